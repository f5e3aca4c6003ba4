import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import pg from 'pg'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { isFree } from '../../start/process.ts'
import { identityOf } from '../../start/process-table.ts'
import { temporaryDirectory } from '../support/directory.ts'

let directory: ReturnType<typeof temporaryDirectory>
const running: Postgres[] = []

beforeEach(() => {
  directory = temporaryDirectory()
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.stop()))
  directory.remove()
})

const start = async (port?: number) => {
  const server = await startPostgres({ dir: join(directory.path, 'postgres'), port })
  running.push(server)
  return server
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

const remember = (url: string) => query(url, "create table note as select 'the pump is loud' as text")
const recall = (url: string) => query(url, 'select text from note')
const remembered = [{ text: 'the pump is loud' }]

/** PostgreSQL started by a process that is not ours. */
async function startByAnother(): Promise<{ starter: ChildProcess; url: string; pid: number }> {
  const script = join(import.meta.dirname, 'stand-ins', 'postgres.ts')
  const starter = spawn(process.execPath, [script, join(directory.path, 'postgres')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: starter.stdout! }), 'line')) as [string]
  return { starter, ...(JSON.parse(line) as { url: string; pid: number }) }
}

test('a second start keeps the data', async () => {
  const first = await start()
  await remember(first.url)
  await first.stop()
  const second = await start()
  expect(await recall(second.url)).toEqual(remembered)
})

test('the database is UTF8, sorts by code point, listens on loopback only and requires its password', async () => {
  const { url, port } = await start()
  expect(
    await query(
      url,
      "select current_setting('listen_addresses') as listens, current_setting('server_encoding') as encoding, datcollate from pg_database where datname = 'nightshift'",
    ),
  ).toEqual([{ listens: '127.0.0.1', encoding: 'UTF8', datcollate: 'C' }])
  await expect(query(`postgresql://postgres:guess@127.0.0.1:${port}/nightshift`, 'select 1')).rejects.toThrow(
    'password authentication failed',
  )
  expect(statSync(join(directory.path, 'postgres', 'password')).mode & 0o777).toBe(0o600)
})

test('a port in use is skipped', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port: taken } = other.address() as { port: number }
  try {
    const { port } = await start(taken)
    expect(port).toBeGreaterThan(taken)
  } finally {
    other.close()
  }
})

test('committed rows are there after PostgreSQL was killed', async () => {
  const first = await start()
  await remember(first.url)
  first.process.kill()
  await first.process.exited
  expect(await recall((await start()).url)).toEqual(remembered)
})

test('a server whose starter was killed is stopped by the next start, which finds its data', async () => {
  const { starter, url, pid } = await startByAnother()
  await remember(url)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  expect(await isFree(Number(new URL(url).port))).toBe(false)
  const next = await start()
  expect(identityOf(pid)).toBeUndefined()
  expect(await recall(next.url)).toEqual(remembered)
})

test('a directory that a running process uses is refused, with the process to stop', async () => {
  const { starter, pid } = await startByAnother()
  try {
    await expect(start()).rejects.toThrow(`started by process ${starter.pid}. Stop that process first.`)
    expect(identityOf(pid)).toBeDefined()
  } finally {
    starter.kill('SIGKILL')
    await once(starter, 'exit')
  }
  await start()
})

test('a lock file with the number of another program does not stop the start', async () => {
  const first = await start()
  const lock = join(first.dataDir, 'postmaster.pid')
  const left = readFileSync(lock, 'utf8').split('\n')
  await first.stop()
  // Same user as the server, or PostgreSQL itself would see through it.
  const { uid, gid } = statSync(first.dataDir)
  const innocent = spawn('sleep', ['60'], { uid, gid })
  writeFileSync(lock, [String(innocent.pid), ...left.slice(1)].join('\n'))
  try {
    await start()
    expect(identityOf(innocent.pid!)).toBeDefined()
  } finally {
    innocent.kill()
  }
})

test('a first start that was killed does not spoil the next', async () => {
  mkdirSync(join(directory.path, 'postgres', 'data.new', 'base'), { recursive: true })
  await start()
})

test('a lost password file is an error with the remedy', async () => {
  const { stop } = await start()
  await stop()
  running.length = 0
  const file = join(directory.path, 'postgres', 'password')
  rmSync(file)
  await expect(start()).rejects.toThrow(`Restore ${file}, or remove`)
})
