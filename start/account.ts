import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'

export interface Account {
  uid: number
  gid: number
}

/**
 * Returns the user that runs PostgreSQL if root starts Nightshift: `postgres`, which is created if
 * absent, or else `nobody`.
 */
export function unprivilegedAccount(): Account {
  const existing = accountNamed('postgres')
  if (existing) return existing
  spawnSync('useradd', ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', 'postgres'])
  const account = accountNamed('postgres') ?? accountNamed('nobody')
  if (account) return account
  throw new Error(
    'PostgreSQL does not run as root, and this machine has no user "postgres". Create that user (useradd --system postgres), start as another user, or set DATABASE_URL.',
  )
}

function accountNamed(name: string): Account | undefined {
  const fields = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([login]) => login === name)
  return fields && { uid: Number(fields[2]), gid: Number(fields[3]) }
}

/** Returns whether the account may enter this directory. */
export function canEnter(dir: string, account: Account): boolean {
  return spawnSync('test', ['-x', dir], { ...account, cwd: '/' }).status === 0
}

/** Returns whether the account can run this program. */
export function runsAs(program: string, account: Account): boolean {
  return spawnSync(program, ['--version'], { ...account, cwd: '/', stdio: 'ignore' }).status === 0
}

/**
 * Creates a directory for files that another user needs. That user cannot enter the state
 * directory, so the new directory is below /var/lib/nightshift.
 */
export function makePrivateDirectory(stateDir: string): string {
  mkdirSync('/var/lib/nightshift', { recursive: true, mode: 0o755 })
  const made = mkdtempSync(`/var/lib/nightshift/${basename(dirname(stateDir)) || 'root'}-`)
  chmodSync(made, statSync(made).mode | 0o011)
  return made
}
