import { readFileSync } from 'node:fs'
import { ensureMeshKeys } from './mesh-keys.ts'

/** The user's environment, and what of it each part gets. */
export type Environment = Record<string, string | undefined>

/** A setting or the contents of the file that `<NAME>_FILE` names; undefined when empty. */
export function setting(env: Environment, name: string): string | undefined {
  const file = env[`${name}_FILE`]
  return env[name] || (file ? readFileSync(file, 'utf8').trim() : undefined) || undefined
}

/**
 * Variables for any program; the lab gets no more, since the agent's commands run in it and it must
 * know no secret.
 */
export function basics(env: Environment): Environment {
  const names = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'LOG_LEVEL']
  return Object.fromEntries(names.map((name) => [name, env[name]]))
}

const isMeshSetting = (name: string) => name.startsWith('MESH_') || name.endsWith('_DEVICE_MESH_URL')

/** Only the API gets the mesh's keys: an attacker in the worker can sign nothing. */
export function withoutMesh(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isMeshSetting(name)))
}

/** The user's own keys and settings, else keys of this start's own. */
export function meshOf(env: Environment, stateDir: string): Environment {
  const given = Object.fromEntries(Object.entries(env).filter(([name]) => isMeshSetting(name)))
  return setting(env, 'MESH_ROOT_KEY_FILE') === undefined ? { ...given, ...ensureMeshKeys(stateDir) } : given
}

/** Does the user name a Temporal, itself or by a profile? */
export function isTemporalGiven(env: Environment): boolean {
  return ['TEMPORAL_ADDRESS', 'TEMPORAL_CONFIG_FILE', 'TEMPORAL_PROFILE'].some((name) => Boolean(env[name]))
}

/** TLS and keys of the user's own Temporal would keep the client away from the embedded one. */
export function withoutTemporal(env: Environment, embedded: boolean): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !(embedded && name.startsWith('TEMPORAL_'))))
}

/** The values are passed on; a file beside a value would be a contradiction. */
export function withoutFiles(env: Environment, names: string[]): Environment {
  return Object.fromEntries(names.filter((name) => env[`${name}_FILE`]).map((name) => [`${name}_FILE`, undefined]))
}
