import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { listRights } from '../../../domain/database-rights.ts'
import { unprivilegedAccount } from '../../../start/account.ts'
import { eventually, freePort } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'

/**
 * Debian's PostgreSQL as a site runs it, on a port of this machine, with the two logins that the
 * rights on the page give.
 */

export type SiteServer = {
  port: number
  directory: string
  /** Runs statements as a superuser. */
  run(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Opens a session of the application, which may be ended. */
  open(application: string, more?: pg.ClientConfig): Promise<pg.Client>
  /** All that the server logged. */
  readLog(): string
  /** Makes this number the next that a process of the server gets. */
  giveNext(pid: number): void
  stop(): Promise<void>
}

export const secretOf = { nightshift_read: 'reads-and-no-more', nightshift_write: 'writes-and-no-more' }

type Wanted = {
  settings?: readonly string[]
  hba?: readonly string[]
  /** Makes the data directory; without it an empty one is made. */
  make?: (data: string, account: { uid: number; gid: number } | undefined) => void
}

const account = process.getuid?.() === 0 ? unprivilegedAccount() : undefined

/** A directory of the account that the server runs as. */
export function ownDirectory(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  if (account) chownSync(path, account.uid, account.gid)
  return path
}

export function runAs(program: string, words: readonly string[]): void {
  execFileSync(findProgram(program)!, words, { stdio: ['ignore', 'ignore', 'inherit'], ...account })
}

export async function startSiteServer(directory: string, wanted: Wanted = {}): Promise<SiteServer> {
  chmodSync(directory, 0o755)
  const port = await freePort()
  const own = ownDirectory(join(directory, `server-${port}`))
  const data = join(own, 'data')
  const log: string[] = []
  if (wanted.make) wanted.make(data, account)
  else {
    const words = ['--pgdata', data, '--username', 'site', '--auth', 'trust', '--no-sync', '--encoding', 'UTF8']
    runAs('initdb', [...words, '--locale', 'C'])
  }
  if (wanted.hba) writeFileSync(join(data, 'pg_hba.conf'), `${wanted.hba.join('\n')}\n`)
  const settings = [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    `unix_socket_directories=${own}`,
    'fsync=off',
    'autovacuum=off',
    'log_line_prefix=%m [%p] app=%a ',
    ...(wanted.settings ?? []),
  ]
  const server = startIn(['-D', data, ...settings.flatMap((each) => ['-c', each])])
  server.stderr?.on('data', (piece: Buffer) => log.push(piece.toString()))
  const clients: pg.Client[] = []
  const open = async (application: string, more: pg.ClientConfig = {}) => {
    const at = { host: '127.0.0.1', port, user: 'shop', database: 'postgres', application_name: application, ...more }
    const client = new pg.Client(at)
    client.on('error', () => undefined)
    await client.connect()
    clients.push(client)
    return client
  }
  const admin = await eventually('PostgreSQL to answer', () => open('site-admin', { user: 'site' }).catch(() => null))
  if (!wanted.make) await admin.query('create role shop login')
  let turn: Promise<unknown> = Promise.resolve()
  return {
    port,
    directory: own,
    run(sql, values = []) {
      const answer = turn.then(() => admin.query(sql, values))
      turn = answer.catch(() => undefined)
      return answer.then(({ rows }) => rows)
    },
    open,
    readLog: () => log.join(''),
    giveNext: (pid) => setNextPid(server, pid),
    async stop() {
      for (const each of clients) each.end().catch(() => undefined)
      await endServer(server)
    },
  }
}

/** As root in numbers of processes that are the server's alone, so that one can be given again. */
function startIn(words: readonly string[]): ChildProcess {
  const postgres = findProgram('postgres')!
  const alone = ['--pid', '--fork', '--setgid', String(account?.gid), '--setuid', String(account?.uid)]
  const [program, args] = account ? ['unshare', [...alone, postgres, ...words]] : [postgres, words]
  return spawn(program, args as string[], { stdio: ['ignore', 'ignore', 'pipe'] })
}

/**
 * The number that the kernel gave last, in the server's own space of numbers
 * (https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html).
 */
function setNextPid(server: ChildProcess, pid: number): void {
  execFileSync('nsenter', [
    '-t',
    String(insideOf(server)),
    '-p',
    '--',
    'sh',
    '-c',
    `echo ${pid - 1} > /proc/sys/kernel/ns_last_pid`,
  ])
}

/** PostgreSQL itself, the first in its space of numbers. */
const insideOf = ({ pid }: ChildProcess): number =>
  account ? Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]) : Number(pid)

/**
 * With all its processes, which have the log open: who changes its account keeps no signal of its
 * parent's death, so `unshare` alone would leave them.
 */
async function endServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const closed = new Promise((resolve) => server.once('close', resolve))
  process.kill(insideOf(server), account ? 'SIGKILL' : 'SIGINT')
  await closed
}

/** Gives the two logins what the page prints, and answers the references of their credentials. */
export async function giveRights(server: SiteServer, files: string): Promise<Record<'read' | 'write', string>> {
  const references = { read: '', write: '' }
  for (const login of ['read', 'write'] as const) {
    const role = `nightshift_${login}` as const
    for (const statement of listRights('PostgreSQL', login))
      await server.run(statement.replace('choose-one', secretOf[role]))
    const file = join(files, `${login}-${server.port}`)
    writeFileSync(file, `${role}:${secretOf[role]}\n`, { mode: 0o600 })
    references[login] = `file:${file}`
  }
  return references
}
