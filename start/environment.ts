import { readFileSync } from 'node:fs'
import { ensureMeshKeys } from './mesh-keys.ts'

/** The user's environment, or the part of it that one program gets. */
export type Environment = Record<string, string | undefined>

/**
 * Returns a setting, or the contents of the file that `<NAME>_FILE` names. Undefined if both are
 * empty.
 */
export function setting(env: Environment, name: string): string | undefined {
  const file = env[`${name}_FILE`]
  return env[name] || (file ? readFileSync(file, 'utf8').trim() : undefined) || undefined
}

/**
 * Returns variables that any program may have. The lab gets no other variables: the agent's
 * commands run in the lab, which must therefore know no secret.
 */
export function basics(env: Environment): Environment {
  const names = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'LOG_LEVEL']
  return Object.fromEntries(names.map((name) => [name, env[name]]))
}

const isMeshSetting = (name: string) => name.startsWith('MESH_') || name.endsWith('_DEVICE_MESH_URL')

/**
 * Removes the mesh's keys and settings from the environment of a program that is not the API, so
 * that an attacker in the worker can sign nothing.
 */
export function withoutMesh(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isMeshSetting(name)))
}

/** Returns the user's mesh settings, with keys that this start makes if the user names none. */
export function meshOf(env: Environment, stateDir: string): Environment {
  const given = Object.fromEntries(Object.entries(env).filter(([name]) => isMeshSetting(name)))
  return setting(env, 'MESH_ROOT_KEY_FILE') === undefined ? { ...given, ...ensureMeshKeys(stateDir) } : given
}

/** Returns whether the user names a Temporal, directly or by a profile. */
export function isTemporalGiven(env: Environment): boolean {
  return ['TEMPORAL_ADDRESS', 'TEMPORAL_CONFIG_FILE', 'TEMPORAL_PROFILE'].some((name) => Boolean(env[name]))
}

/**
 * Removes the settings of the user's Temporal if the embedded Temporal runs, because they do not
 * fit the embedded Temporal.
 */
export function withoutTemporal(env: Environment, embedded: boolean): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !(embedded && name.startsWith('TEMPORAL_'))))
}

/**
 * Unsets the `_FILE` variables of settings that the start sets, because a setting with both
 * variables would contradict itself.
 */
export function withoutFiles(env: Environment, names: string[]): Environment {
  return Object.fromEntries(names.filter((name) => env[`${name}_FILE`]).map((name) => [`${name}_FILE`, undefined]))
}
