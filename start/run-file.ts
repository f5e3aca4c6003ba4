import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { identityOf, isRunning } from './process-table.ts'
import { ensureMeshKeys } from './web.ts'

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

/** What a running Nightshift tells scripts and the command line about itself; kept when it stops, so that tokens survive. */
export interface Run {
  url: string
  temporalAddress: string
  temporalUiUrl: string | null
  databaseUrl: string
  labUrl: string | null
  labControlToken: string | null
  /** What is asked; absent in files of version 0.1.0. */
  model?: { baseUrl: string; name: string; isRuleTable: boolean }
  tokens: Partial<Record<'admin' | 'approver' | 'ingest' | 'agent', string>>
  /** The process to ask; null when it has stopped. */
  pid: number | null
}

/** Where a checkout keeps its state. */
export function stateDirOf(rootDir: string): string {
  return join(rootDir, '.nightshift')
}

/** The run file of the last start, or undefined when there was none. */
export function readRunFile(stateDir: string): Run | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'run.json'), 'utf8')) as Run
  } catch {
    return undefined
  }
}

/** Replaces the run file in one step; only the owner of the checkout can read it. */
export function writeRunFile(stateDir: string, run: Run): void {
  const file = join(stateDir, 'run.json')
  writeFileSync(`${file}.new`, `${JSON.stringify(run, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

/**
 * Where the pages are, with a code that signs one browser in, once and within ten minutes. The code stands behind `#`, which
 * browsers send to nobody: it is in no log and no referrer.
 */
export async function signInLink({ url, tokens }: Run, env: Environment): Promise<string> {
  const shown = env.PUBLIC_URL || url
  const answer = tokens.admin
    ? await fetch(`${url}/auth/codes`, { method: 'POST', headers: { authorization: `Bearer ${tokens.admin}` } }).catch(
        () => null,
      )
    : null
  const { code } = answer?.ok ? ((await answer.json()) as { code?: string }) : {}
  return code ? `${shown}/sign-in#code=${code}` : shown
}

interface Holder {
  pid: number
  identity: string
}

/**
 * Takes the lock file for this process and returns the function that gives it back, or the number of the living process
 * that holds it. The lock of a process that has died is taken over.
 */
export function takeLock(file: string): { release(): void } | { heldBy: number } {
  const mine: Holder = { pid: process.pid, identity: identityOf(process.pid) ?? '' }
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 })
  try {
    for (;;) {
      try {
        // A link appears complete or not at all, so nobody ever reads a half-written lock.
        linkSync(draft, file)
        return { release: () => release(file, mine) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = readHolder(file)
      if (holder && isRunning(holder.pid, holder.identity)) return { heldBy: holder.pid }
      const other = moveAside(file, `${draft}.stale`)
      if (other) return { heldBy: other.pid }
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Puts away the lock of a dead process; answers the holder if a living one took it over in that very moment. */
function moveAside(file: string, aside: string): Holder | undefined {
  try {
    renameSync(file, aside)
  } catch {
    return undefined
  }
  const holder = readHolder(aside)
  const living = holder && isRunning(holder.pid, holder.identity) ? holder : undefined
  if (living) linkSync(aside, file)
  rmSync(aside)
  return living
}

function release(file: string, mine: Holder): void {
  const holder = readHolder(file)
  if (holder?.pid === mine.pid && holder.identity === mine.identity) rmSync(file, { force: true })
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder
  } catch {
    return undefined
  }
}
