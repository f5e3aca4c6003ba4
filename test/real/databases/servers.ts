import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { unprivilegedAccount } from '../../../start/account.ts'
import { eventually } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'

export type RealServer = {
  /** Words that lead a client to it. */
  at: string[]
  stop(): Promise<void>
}

/** Debian's PostgreSQL on a socket in this directory; `more`: its settings beside that. */
export async function startPostgresql(directory: string, more: readonly string[] = []): Promise<RealServer> {
  const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined
  const sockets = join(directory, 'postgresql')
  mkdirSync(sockets)
  chmodSync(sockets, 0o755)
  if (account) chownSync(sockets, account.uid, account.gid)
  const data = join(sockets, 'data')
  const options = { stdio: 'ignore' as const, ...account }
  const initdb = ['--pgdata', data, '--username', 'site', '--auth', 'trust', '--no-sync', '--encoding', 'UTF8']
  execFileSync(findProgram('initdb')!, [...initdb, '--locale', 'C'], options)
  const settings = ['listen_addresses=', `unix_socket_directories=${sockets}`, 'fsync=off', ...more]
  const server = spawn(findProgram('postgres')!, ['-D', data, ...settings.flatMap((each) => ['-c', each])], options)
  const port = more.flatMap((each) => (each.startsWith('port=') ? ['-p', each.slice(5)] : []))
  const at = ['-h', sockets, ...port, '-U', 'site', '-d', 'postgres']
  await eventually('PostgreSQL to answer', () => answers(findProgram('psql')!, [...at, '-c', 'select 1']))
  return { at, stop: () => ended(server, 'SIGINT') }
}

/** Debian's MariaDB on a socket in this directory. */
export async function startMariadb(directory: string): Promise<RealServer> {
  const socket = join(directory, 'mariadb.sock')
  const data = join(directory, 'mariadb')
  const as = ['--no-defaults', `--datadir=${data}`, '--user=root']
  execFileSync('mariadb-install-db', [...as, '--auth-root-authentication-method=normal'], { stdio: 'ignore' })
  const server = spawn(findProgram('mariadbd')!, [...as, `--socket=${socket}`, '--skip-networking'], {
    stdio: 'ignore',
  })
  const at = [`--socket=${socket}`, '-u', 'root']
  await eventually(
    'MariaDB to answer',
    () => existsSync(socket) && answers(findProgram('mariadb')!, [...at, '-e', 'select 1']),
  )
  return { at, stop: () => ended(server, 'SIGTERM') }
}

function answers(program: string, words: string[]): boolean {
  try {
    execFileSync(program, words, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

async function ended(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const exit = new Promise((resolve) => server.once('exit', resolve))
  server.kill(signal)
  await exit
}
