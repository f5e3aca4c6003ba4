import { execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { programPath } from '../../lab/databases/programs.ts'
import { eventually, freePort } from './directory.ts'

/** Root may not run it. */
const nobody = 65_534

type DebianPostgres = {
  /** A folder that goes with the server. */
  dir: string
  url(database: string): string
  ask(database: string, text: string): Promise<pg.QueryResult>
  stop(): Promise<void>
}

/** A server of Debian's package, where a test needs `pg_dump`: the one that npm brings has none. */
export async function debianPostgres(): Promise<DebianPostgres> {
  const isRoot = process.getuid?.() === 0
  const as = isRoot ? { uid: nobody, gid: nobody } : {}
  const dir = mkdtempSync(join(tmpdir(), 'nightshift-debian-'))
  if (isRoot) chownSync(dir, nobody, nobody)
  const [data, password] = [join(dir, 'data'), join(dir, 'password')]
  writeFileSync(password, 'secret')
  const settings = ['-D', data, '-U', 'nightshift', '-A', 'scram-sha-256', '--pwfile', password]
  execFileSync(programPath('initdb'), settings, { ...as, cwd: dir })
  const port = await freePort()
  const given = ['-D', data, '-p', String(port), '-c', 'listen_addresses=127.0.0.1', '-k', dir]
  const server = spawn(programPath('postgres'), given, { ...as, cwd: dir, stdio: 'ignore' })
  const url = (name: string) => `postgresql://nightshift:secret@127.0.0.1:${port}/${name}`
  const ask = async (name: string, text: string) => {
    const client = new pg.Client({ connectionString: url(name) })
    await client.connect()
    try {
      return await client.query(text)
    } finally {
      await client.end()
    }
  }
  await eventually('PostgreSQL to answer', () =>
    ask('postgres', 'select 1').then(
      () => true,
      () => false,
    ),
  )
  return {
    dir,
    url,
    ask,
    async stop() {
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGINT')
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
