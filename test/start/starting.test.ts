import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { Connection } from '@temporalio/client'
import pg from 'pg'
import { whyInstall } from '../../bin/node24.js'
import { enrolLab } from '../../start/lab-devices.ts'
import { takeLock } from '../../start/lock.ts'
import { type Exit, type RunningProcess, startProcess, waitUntilReady } from '../../start/process.ts'
import { groupMembers, identityOf, openLedger, stopLeftovers } from '../../start/process-table.ts'
import { labDirectory } from '../../start/programs.ts'
import { ensureWeb } from '../../start/web.ts'
import { freshDatabase, temporalAddress } from '../support/broker.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'

describe('starting', () => {
  describe('enrol lab', () => {
    /** As much of the core API as enrolling needs, with the devices that it knows. */
    const known = new Map<string, { id: string; enrolledAt: string | null; revokedAt: string | null }>()
    const server = createServer((request, response) => {
      const [, id = '', what] = /^\/api\/v1\/devices(?:\/([^/]+))?(?:\/(\w+))?$/.exec(request.url ?? '') ?? []
      if (request.method === 'PUT') known.set(id, { id, enrolledAt: null, revokedAt: null })
      const body =
        request.method === 'GET' ? { items: [...known.values()] } : what === 'enrolment' ? { token: `t-${id}` } : {}
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(body))
    })
    let url: string

    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    })
    afterAll(() => void server.close())
    beforeEach(() => known.clear())

    const enrolledNow: string[] = []
    const lab = {
      devices: async () =>
        ['web-1', 'web-2', 'web-3'].map((id) => ({ id, url: 'http://127.0.0.1:1', root: '/srv', state: 'running' })),
      async enrol(id: string) {
        enrolledNow.push(id)
        const at = '2026-11-23T00:00:00Z'
        known.set(id, { id, enrolledAt: at, revokedAt: null })
        return { id, url: '', root: '', state: 'running' }
      },
    }

    test('a lab that was enrolled at a database that is gone is enrolled again, and what the core API knows is left alone', async () => {
      known.set('web-2', { id: 'web-2', enrolledAt: '2026-11-22T00:00:00Z', revokedAt: null })
      known.set('web-3', { id: 'web-3', enrolledAt: null, revokedAt: '2026-11-22T00:00:00Z' })
      expect(await enrolLab(url, 'admin', lab)).toBe(1)
      expect(enrolledNow).toEqual(['web-1'])
      expect(await enrolLab(url, 'admin', lab)).toBe(0)
    })
  })

  describe('lab directory', () => {
    const isRoot = process.getuid?.() === 0

    function checkout(mode: number): { stateDir: string; remove(): void } {
      const directory = temporaryDirectory()
      const stateDir = join(directory.path, '.nightshift')
      mkdirSync(stateDir)
      chmodSync(directory.path, mode)
      return { stateDir, remove: directory.remove }
    }

    test('the lab keeps its machines beside the state', () => {
      const { stateDir, remove } = checkout(0o755)
      expect(labDirectory(stateDir)).toBe(`${stateDir}-lab`)
      remove()
    })

    test('where the checkout is closed to the user that the machines run as, they are where that user gets, start after start', () => {
      const { stateDir, remove } = checkout(0o700)
      const found = labDirectory(stateDir)
      expect(labDirectory(stateDir)).toBe(found)
      // Whoever does not start as root runs them as themselves, and gets everywhere that they do.
      expect(found.startsWith(dirname(stateDir))).toBe(!isRoot)
      if (isRoot) {
        expect(statSync(dirname(found)).mode & 0o001).toBe(0o001)
        rmSync(dirname(found), { recursive: true })
      }
      remove()
    })
  })

  describe('node24', () => {
    let directory: ReturnType<typeof temporaryDirectory>

    beforeEach(() => {
      directory = temporaryDirectory()
      mkdirSync(join(directory.path, 'node_modules'))
    })

    afterEach(() => directory.remove())

    const wanted = {
      '': { version: '0.1.0' },
      'node_modules/pump': { version: '1.0.0' },
      'node_modules/for-another-platform': { version: '1.0.0', optional: true },
    }

    /** A lockfile that is newer than what is installed. */
    function checkout(lock: object, installed?: object): string {
      writeFileSync(join(directory.path, 'package-lock.json'), JSON.stringify({ packages: lock }))
      if (installed) {
        const file = join(directory.path, 'node_modules', '.package-lock.json')
        writeFileSync(file, JSON.stringify({ packages: installed }))
        utimesSync(file, new Date(0), new Date(0))
      }
      return directory.path
    }

    test('a fresh clone is installed', () => {
      expect(whyInstall(checkout(wanted))).toBe('nothing is installed yet')
    })

    test('a lockfile that asks for another version is installed', () => {
      expect(whyInstall(checkout(wanted, { 'node_modules/pump': { version: '0.9.0' } }))).toBe(
        'package-lock.json asks for pump 1.0.0, which is not installed',
      )
    })

    test('a lockfile that is newer but asks for what is there installs nothing', () => {
      expect(whyInstall(checkout(wanted, { 'node_modules/pump': { version: '1.0.0' } }))).toBeUndefined()
    })
  })

  describe('test servers', () => {
    test('each test gets a migrated database of its own', async () => {
      const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
      const client = new pg.Client({ connectionString: one.url })
      await client.connect()
      try {
        expect((await client.query('select count(*)::int as count from incident')).rows).toEqual([{ count: 0 }])
        expect(one.url).not.toBe(other.url)
      } finally {
        await client.end()
        await Promise.all([one.drop(), other.drop()])
      }
    })

    test('the Temporal server knows the search attributes', async () => {
      const connection = await Connection.connect({ address: await temporalAddress() })
      try {
        const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace: 'default' })
        expect(Object.keys(customAttributes ?? {})).toEqual(
          expect.arrayContaining(['IncidentType', 'Severity', 'Target', 'Role', 'Status']),
        )
      } finally {
        await connection.close()
      }
    })
  })

  describe('web', () => {
    /** A checkout in which the bundler is a script that only writes where it was told to. */
    function checkout() {
      const { path, remove } = temporaryDirectory()
      mkdirSync(join(path, 'web'), { recursive: true })
      mkdirSync(join(path, 'node_modules', 'vite', 'bin'), { recursive: true })
      const bundler = `import { mkdirSync, writeFileSync } from 'node:fs'
const out = process.argv[process.argv.indexOf('--outDir') + 1]
if (process.env.BROKEN) { console.error('main.tsx: no such thing'); process.exit(1) }
mkdirSync(out); writeFileSync(out + '/index.html', 'built')`
      writeFileSync(join(path, 'node_modules', 'vite', 'bin', 'vite.js'), bundler)
      writeFileSync(join(path, 'node_modules', 'vite', 'package.json'), '{ "type": "module" }')
      writeFileSync(join(path, 'web', 'main.tsx'), '')
      writeFileSync(join(path, 'package-lock.json'), '{}')
      return { path, remove }
    }

    const changed = (file: string, inSeconds: number) => {
      const at = Date.now() / 1000 + inSeconds
      utimesSync(file, at, at)
    }

    test('pages are built when they are missing or older than their source, and not again', async () => {
      const { path, remove } = checkout()
      expect(await ensureWeb(path)).toBe(true)
      changed(join(path, 'web', 'dist', 'index.html'), 10)
      expect(await ensureWeb(path)).toBe(false)
      changed(join(path, 'web', 'main.tsx'), 20)
      expect(await ensureWeb(path)).toBe(true)
      changed(join(path, 'web', 'dist', 'index.html'), 10)
      changed(join(path, 'web', 'main.tsx'), 0)
      changed(join(path, 'package-lock.json'), 20)
      expect(await ensureWeb(path)).toBe(true)
      remove()
    })

    test('pages that cannot be built are told with what the bundler said, and what was there stays', async () => {
      const { path, remove } = checkout()
      await ensureWeb(path)
      changed(join(path, 'web', 'main.tsx'), 20)
      process.env.BROKEN = '1'
      try {
        await expect(ensureWeb(path)).rejects.toThrow('main.tsx: no such thing')
        delete process.env.BROKEN
        changed(join(path, 'web', 'main.tsx'), -20)
        changed(join(path, 'package-lock.json'), -20)
        expect(await ensureWeb(path)).toBe(false)
      } finally {
        delete process.env.BROKEN
        remove()
      }
    })
  })
})

describe('process', () => {
  let directory: ReturnType<typeof temporaryDirectory>
  const running: RunningProcess[] = []

  beforeEach(() => {
    directory = temporaryDirectory()
  })

  afterEach(async () => {
    await Promise.all(running.splice(0).map((child) => child.stop(0)))
    directory.remove()
  })

  async function start(script: string, env: Record<string, string> = {}, onExit?: (exit: Exit) => void) {
    const child = await startProcess({
      name: script,
      command: process.execPath,
      args: [join(import.meta.dirname, 'stand-ins', `${script}.ts`)],
      env: { PATH: process.env.PATH, ...env },
      logFile: join(directory.path, `${script}.log`),
      onExit,
    })
    running.push(child)
    return child
  }

  test('a process that ends while starting is told with the last lines of its log', async () => {
    const child = await start('part', { LAST_WORDS: 'cannot find the pump' })
    const port = await freePort()
    await expect(waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)).rejects.toThrow(
      /part ended with code 3 while starting.*\n {2}cannot find the pump/,
    )
  })

  test('a process that does not become ready is told with what it answered', async () => {
    const port = await freePort()
    const child = await start('part', { PORT: String(port), STUBBORN: '1' })
    // Before it listens it has no answer to be told.
    await eventually('it to listen', () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))
    const url = `http://127.0.0.1:${port}/readyz`
    // On a busy machine a whole wait may pass without an answer: then its message says so, and the next one is asked.
    const told = await eventually('a wait that was answered', async () => {
      const refused = await waitUntilReady(child, url, { timeoutMs: 1_000 }).catch((error: Error) => error)
      return /it answered/.test(refused?.message ?? '') && refused?.message
    })
    expect(told).toContain(`was not ready within 1 s at ${url}: it answered 503 {"database":"down"}`)
  })

  test('a process that ignores the request to stop is killed after its grace', async () => {
    const port = await freePort()
    const child = await start('part', { PORT: String(port), STUBBORN: '1' })
    // Before it listens it would go when asked to.
    await eventually('it to listen', () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))
    await child.stop(300)
    expect((await child.exited).code).toBe(128 + 9)
  })

  test('stopping a process stops what it has started in turn, and is not told as an exit', async () => {
    const exits: Exit[] = []
    const port = await freePort()
    const child = await start('part', { PORT: String(port) }, (exit) => exits.push(exit))
    await waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)
    expect(groupMembers(child.pid)).toHaveLength(2)
    await child.stop()
    expect(groupMembers(child.pid)).toHaveLength(0)
    expect(exits).toEqual([])
  })

  test('a process that dies by itself is told as an exit', async () => {
    const port = await freePort()
    const told = Promise.withResolvers<Exit>()
    const child = await start('part', { PORT: String(port) }, told.resolve)
    await waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)
    process.kill(child.pid, 'SIGKILL')
    expect(await told.promise).toMatchObject({ name: 'part', code: 128 + 9 })
  })

  test('a process inherits no environment', async () => {
    const port = await freePort()
    const child = await start('part', { PORT: String(port) })
    await waitUntilReady(child, `http://127.0.0.1:${port}/readyz`)
    const env = (await (await fetch(`http://127.0.0.1:${port}/env`)).json()) as Record<string, string>
    expect(env.NIGHTSHIFT_TEST_SERVERS).toBeUndefined()
  })

  test('the ledger of a living process is left alone', async () => {
    const file = join(directory.path, 'processes.json')
    const ledger = openLedger(file)
    const sleeper = spawn('sleep', ['60'], { detached: true })
    await once(sleeper, 'spawn')
    ledger.add('sleeper', sleeper.pid!)
    expect(await stopLeftovers(file)).toEqual([])
    expect(identityOf(sleeper.pid!)).toBeDefined()
    ledger.kill()
    await once(sleeper, 'exit')
  })

  test('a process that merely got the number of one in the ledger is left alone', async () => {
    const file = join(directory.path, 'processes.json')
    const innocent = spawn('sleep', ['60'], { detached: true })
    await once(innocent, 'spawn')
    openLedger(file).add('worker', innocent.pid!)
    const page = JSON.parse(readFileSync(file, 'utf8')) as {
      owner: { identity: string }
      processes: { identity: string }[]
    }
    page.owner.identity = 'another boot:1'
    page.processes[0]!.identity = 'another boot:2'
    writeFileSync(file, JSON.stringify(page))
    expect(await stopLeftovers(file)).toEqual([])
    expect(identityOf(innocent.pid!)).toBeDefined()
    innocent.kill()
  })

  test('the lock is held by one process at a time and taken over from a dead one', async () => {
    const file = join(directory.path, 'lock')
    const first = takeLock(file)
    expect(first).not.toHaveProperty('heldBy')
    expect(takeLock(file)).toEqual({ heldBy: process.pid })
    if ('release' in first) first.release()

    writeFileSync(file, JSON.stringify({ pid: process.pid, identity: 'another boot:1' }))
    expect(takeLock(file)).not.toHaveProperty('heldBy')
  })
})
