import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { ensureMeshKeys } from './enrol-lab.ts'

/** The user's environment, and what of it each part gets. */
export type Environment = Record<string, string | undefined>

/** A setting or the contents of the file that `<NAME>_FILE` names; undefined when empty. */
export function setting(env: Environment, name: string): string | undefined {
  const file = env[`${name}_FILE`]
  return env[name] || (file ? readFileSync(file, 'utf8').trim() : undefined) || undefined
}

/** What any program needs; the lab gets no more, since the agent's commands run in it and it must know no secret of ours. */
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

export interface Account {
  uid: number
  gid: number
}

/** The user that runs PostgreSQL when root starts it: `postgres`, created where there is none, else `nobody`. */
export function unprivilegedAccount(): Account {
  const existing = accountNamed('postgres')
  if (existing) return existing
  spawnSync('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', 'postgres'])
  const account = accountNamed('postgres') ?? accountNamed('nobody')
  if (account) return account
  throw new Error(
    'PostgreSQL does not run as root, and there is no user "postgres" to run it as. Create one (useradd --system postgres), start as another user, or set DATABASE_URL.',
  )
}

function accountNamed(name: string): Account | undefined {
  const fields = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([login]) => login === name)
  return fields && { uid: Number(fields[2]), gid: Number(fields[3]) }
}

/** May it go into this directory? */
export function canEnter(dir: string, account: Account): boolean {
  return spawnSync('test', ['-x', dir], { ...account, cwd: '/' }).status === 0
}

/** Can it run this program? */
export function runsAs(program: string, account: Account): boolean {
  return spawnSync(program, ['--version'], { ...account, cwd: '/', stdio: 'ignore' }).status === 0
}

/** A new directory for what cannot be kept beside a state directory, since that is closed to the user who works in it. */
export function elsewhere(stateDir: string): string {
  mkdirSync('/var/lib/nightshift', { recursive: true, mode: 0o755 })
  const made = mkdtempSync(`/var/lib/nightshift/${basename(dirname(stateDir)) || 'root'}-`)
  chmodSync(made, statSync(made).mode | 0o011)
  return made
}
