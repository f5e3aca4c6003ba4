import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { connect } from '../../db/connect.ts'
import { newId } from '../../domain/digest.ts'
import { startEverything } from '../../start/everything.ts'
import type { PartEvent } from '../../start/parts.ts'
import { groupMembers, identityOf, openLedger } from '../../start/process-table.ts'
import { readRunFile } from '../../start/run-file.ts'
import { freshDatabase, temporalAddress } from '../support/broker.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'

const rootDir = join(import.meta.dirname, '..', '..')
const standIn = (name: string) => join(import.meta.dirname, 'stand-ins', `${name}.ts`)
const part = standIn('part')
const entries = { lab: part, runbook: part, api: part, worker: part }

let directory: ReturnType<typeof temporaryDirectory>
let stateDir: string
let database: Awaited<ReturnType<typeof freshDatabase>>
let given: Record<string, string | undefined>
const toStop: (() => Promise<void>)[] = []

beforeEach(async () => {
  directory = temporaryDirectory()
  stateDir = join(directory.path, 'state')
  database = await freshDatabase()
  given = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: await temporalAddress(),
  }
})

afterEach(async () => {
  for (const stop of toStop.splice(0).reverse()) await stop()
  await database.drop()
  directory.remove()
})

async function start(env = given, own: Partial<typeof entries> = {}, lab = true) {
  const events: PartEvent[] = []
  const options = { rootDir, stateDir, env, entries: { ...entries, ...own }, restartDelaysMs: [20, 40], lab }
  const running = await startEverything(options, (event) => events.push(event))
  toStop.push(running.stop)
  return { ...running, events }
}

const environmentOf = async (url: string) => (await (await fetch(`${url}/env`)).json()) as Record<string, string>

const ready = (events: PartEvent[]) => events.flatMap((event) => (event.kind === 'ready' ? [event.part] : []))

/** The numbers of the processes in the ledger, by name. */
function listed(): Record<string, number> {
  const { processes } = JSON.parse(readFileSync(join(stateDir, 'processes.json'), 'utf8')) as {
    processes: { name: string; pid: number }[]
  }
  return Object.fromEntries(processes.map(({ name, pid }) => [name, pid]))
}

/** `npm start` in a process of its own. */
async function startElsewhere(env = given): Promise<{ starter: ChildProcess; url: string; events: PartEvent[] }> {
  const starter = spawn(process.execPath, [standIn('start'), stateDir, rootDir], {
    env: env as NodeJS.ProcessEnv,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  toStop.push(async () => {
    starter.kill('SIGKILL')
  })
  const events: PartEvent[] = []
  for await (const line of createInterface({ input: starter.stdout! })) {
    const event = JSON.parse(line) as PartEvent | { kind: 'all ready'; url: string }
    if (event.kind === 'all ready') return { starter, url: event.url, events }
    events.push(event)
  }
  throw new Error('The start ended before it was ready')
}

test('a start brings every part up and gives each the addresses of the others', async () => {
  const { run, events } = await start({ ...given, LLM_API_KEY: 'of the user', QUEUE_INTERVAL_SECONDS: '5' })
  expect(ready(events).sort()).toEqual(['API', 'Database', 'Lab', 'Model', 'Worker'])
  const lab = await environmentOf(run.labUrl!)
  const api = await environmentOf(run.url)
  expect(lab).toMatchObject({
    LAB_CONTROL_TOKEN: run.labControlToken,
    ALERT_URL: `${run.url}/api/v1/ingest/alertmanager`,
    ALERT_TOKEN: run.tokens.ingest,
    LAB_DIR: `${stateDir}-lab`,
  })
  expect(api).toMatchObject({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: run.temporalAddress,
    PLATFORM_URL: run.labUrl,
    PLATFORM_TOKEN: lab.LAB_PLATFORM_TOKEN,
    PUBLIC_URL: run.url,
    AGENT_ENABLED: 'true',
    AGENT_API_KEY: run.tokens.agent,
    QUEUE_INTERVAL_SECONDS: '5',
    LLM_MODEL: 'runbook-rules',
  })
  // The agent's commands run in the lab.
  for (const secret of ['LLM_API_KEY', 'DATABASE_URL', 'AGENT_API_KEY']) expect(lab).not.toHaveProperty(secret)
})

test('only the owner can read the run file, and a second start keeps its tokens', async () => {
  const first = await start()
  const file = join(stateDir, 'run.json')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readRunFile(stateDir)).toEqual({ ...first.run, pid: process.pid })
  await first.stop()
  expect(readRunFile(stateDir)).toEqual({ ...first.run, pid: null })
  const second = await start()
  expect(second.run.tokens).toEqual(first.run.tokens)
  expect(Object.keys(second.run.tokens).sort()).toEqual(['admin', 'agent', 'approver', 'ingest'])
})

test('a part that the environment names is not started', async () => {
  const env = {
    ...given,
    CORE_API_URL: 'http://127.0.0.1:1',
    AGENT_API_KEY: 'theirs',
    LLM_BASE_URL: 'http://127.0.0.1:2/v1',
  }
  const { events, run } = await start(env)
  expect(ready(events)).toEqual(['Database', 'Worker'])
  expect(run).toMatchObject({ url: 'http://127.0.0.1:1', labUrl: null })
  expect(Object.keys(listed())).toEqual(['worker'])
})

test('without the lab there is no platform and no rule table, and without a model the agent is off', async () => {
  const { events, run } = await start(given, {}, false)
  expect(ready(events).sort()).toEqual(['API', 'Database', 'Worker'])
  const api = await environmentOf(run.url)
  expect(api).not.toHaveProperty('PLATFORM_URL')
  expect([run.labUrl, api.AGENT_ENABLED]).toEqual([null, 'false'])
})

test('a wrong setting stops the start with one message that lists all of them', async () => {
  const env = { ...given, QUEUE_INTERVAL_SECONDS: 'often', LOG_LEVEL: 'loud' }
  await expect(start(env)).rejects.toThrow(/QUEUE_INTERVAL_SECONDS[\s\S]*LOG_LEVEL/)
  expect(existsSync(stateDir)).toBe(false)
})

test('a requested port that is in use stops the start', async () => {
  const { run } = await start()
  const { port } = new URL(run.url)
  stateDir = join(directory.path, 'another')
  await expect(start({ ...given, PORT: port })).rejects.toThrow(
    new RegExp(`PORT is set to port ${port}, which is in use by process \\d+ \\(node .*part\\.ts\\)\\.`),
  )
})

test('a second start in the same checkout is refused with the address of the first', async () => {
  const { run } = await start()
  await expect(start()).rejects.toThrow(`already runs from ${stateDir}, as process ${process.pid} at ${run.url}`)
})

test('if a part does not start, the others are stopped and its log is shown', async () => {
  const broken = start({ ...given, LAST_WORDS: 'cannot find the pump' })
  await expect(broken).rejects.toThrow(/api ended with code 3 while starting[\s\S]*cannot find the pump/)
  expect(listed()).toEqual({})
  // And the next start is not refused.
  await start()
})

test('a part that ends by itself is started again at its port', async () => {
  const { events, run } = await start()
  const before = listed().worker!
  process.kill(before, 'SIGKILL')
  await eventually('the worker to run again', async () => events.some(({ kind }) => kind === 'restarted'))
  expect(events.slice(-2)).toMatchObject([
    { kind: 'exited', part: 'Worker', exit: { code: 137 }, restartInMs: 20 },
    { kind: 'restarted', part: 'Worker' },
  ])
  expect(listed().worker).not.toBe(before)
  const address = events.flatMap((event) => (event.kind === 'ready' && event.part === 'Worker' ? [event.result] : []))
  expect(await environmentOf(address[0]!)).toMatchObject({ DATABASE_URL: run.databaseUrl })
})

test('a part that ends again and again stays down after some attempts, which is reported with its log', async () => {
  const { events } = await start({ ...given, SOON_GONE: '300' })
  const hasGivenUp = () => events.some((event) => event.kind === 'exited' && event.restartInMs === null)
  await eventually('the start to give the worker up', async () => hasGivenUp())
  const exits = events.flatMap((event) => (event.kind === 'exited' ? [event.restartInMs] : []))
  expect(exits).toEqual([20, 40, null])
  // What it had started is ended first.
  await eventually('the worker to leave the list', async () => !('worker' in listed()))
  expect(Object.keys(listed()).sort()).toEqual(['api', 'lab', 'model'])
})

test("a foreign process at a part's port does not count as the part, which gets another port", async () => {
  const marker = join(directory.path, 'taken')
  const { run, events } = await start({ ...given, TAKEN_ONCE: marker })
  const [pid, port] = readFileSync(marker, 'utf8').split(' ').map(Number) as [number, number]
  toStop.push(async () => void process.kill(pid, 'SIGKILL'))
  const places = events.flatMap((event) => (event.kind === 'ready' ? [event.result] : []))
  expect(places).not.toContain(`http://127.0.0.1:${port}`)
  expect(events.findLast((event) => event.kind === 'ready' && event.part === 'Worker')).toBeDefined()
  expect((await environmentOf(run.url)).PORT).toBe(new URL(run.url).port)
})

test('Ctrl-C stops everything that was started and leaves nothing behind', async () => {
  const { starter, url } = await startElsewhere()
  const { grandchild } = await environmentOf(url)
  const pids = Object.values(listed())
  expect(pids).toHaveLength(4)
  starter.kill('SIGINT')
  const [code] = await once(starter, 'exit')
  expect(code).toBe(0)
  expect(pids.flatMap(groupMembers)).toEqual([])
  expect(identityOf(Number(grandchild))).toBeUndefined()
  expect(readRunFile(stateDir)?.pid).toBeNull()
})

test('a second Ctrl-C does not wait', async () => {
  const { starter } = await startElsewhere()
  const pids = Object.values(listed())
  // Stopped processes do not react to SIGTERM.
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  // Two that arrive together are one to a process.
  const pressing = setInterval(() => starter.kill('SIGINT'), 100)
  const [code] = await once(starter, 'exit')
  clearInterval(pressing)
  expect(code).toBe(130)
  await eventually('all to be gone', () => pids.flatMap(groupMembers).length === 0)
})

test('a killed start leaves no process that nobody would restart', async () => {
  const { starter, url } = await startElsewhere()
  const { grandchild } = await environmentOf(url)
  const left = Object.values(listed())
  expect(left.flatMap(groupMembers).length).toBeGreaterThan(0)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  await eventually('all to be gone', () => left.flatMap(groupMembers).length === 0)
  expect(identityOf(Number(grandchild))).toBeUndefined()
  const told = () =>
    readFileSync(join(stateDir, 'logs/start.log'), 'utf8').includes(
      'the start was killed, so these processes were stopped',
    )
  await eventually('it to be said', told)
  await start()
})

const itAsRoot = process.getuid?.() === 0 ? test : test.skip
itAsRoot(
  'a full disk is named with its folder and what is needed there, and nothing is left of the start',
  async () => {
    mkdirSync(stateDir)
    // Room for the lock and nothing else.
    const mounted = `mount -t tmpfs -o size=4k,mode=700 tmpfs '${stateDir}'; exec "$@"`
    const words = ['--mount', '--propagation', 'private', '/bin/sh', '-c', mounted, 'sh']
    const starter = spawn('unshare', [...words, process.execPath, standIn('start'), stateDir, rootDir], {
      env: given as NodeJS.ProcessEnv,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    starter.stderr.on('data', (chunk) => {
      said += chunk
    })
    const [code] = await once(starter, 'close')
    expect([code, said]).toEqual([
      1,
      expect.stringMatching(/The disk is full: \S+state \(a first start writes \d+ MB, 0 MB are free\)/),
    ])
  },
)

test('the next start stops and names the processes that a killed start left', async () => {
  mkdirSync(stateDir)
  const file = join(stateDir, 'processes.json')
  const ledger = openLedger(file)
  const sleeper = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
  await once(sleeper, 'spawn')
  ledger.add('worker', sleeper.pid as number)
  const page = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...page, owner: { pid: 2, identity: 'gone' } }))
  const { events } = await start()
  expect(events.find((event) => event.kind === 'tidied')).toMatchObject({ names: ['worker'] })
  expect(identityOf(sleeper.pid as number)).toBeUndefined()
})

test('without settings PostgreSQL and Temporal are started too, and Ctrl-C during the start stops them', async () => {
  const { DATABASE_URL: _, TEMPORAL_ADDRESS: __, ...nothing } = given
  const first = await startElsewhere(nothing)
  expect(ready(first.events).sort()).toEqual(['API', 'Database', 'Lab', 'Model', 'PostgreSQL', 'Temporal', 'Worker'])
  const run = readRunFile(stateDir)
  expect(await environmentOf(first.url)).toMatchObject({
    DATABASE_URL: run?.databaseUrl,
    TEMPORAL_ADDRESS: run?.temporalAddress,
  })
  first.starter.kill('SIGTERM')
  await once(first.starter, 'exit')

  const second = spawn(process.execPath, [standIn('start'), stateDir, rootDir], {
    env: nothing as NodeJS.ProcessEnv,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: second.stdout })
  for await (const line of lines) if (line.includes('"starting","part":"Database"')) break
  const pids = Object.values(listed())
  expect(pids.length).toBeGreaterThan(0)
  second.kill('SIGINT')
  expect((await once(second, 'exit'))[0]).toBe(0)
  expect(pids.flatMap(groupMembers)).toEqual([])
})

test('only the API has the keys of the mesh, and a second start keeps them', async () => {
  const first = await start()
  const file = String((await environmentOf(first.run.url)).MESH_SIGNING_KEY_FILE)
  expect(statSync(file).mode & 0o077).toBe(0)
  const key = readFileSync(file, 'utf8')
  expect(key).toContain('BEGIN PRIVATE KEY')
  for (const event of first.events) {
    if (event.kind !== 'ready' || !['Worker', 'Lab', 'Model'].includes(event.part)) continue
    const names = Object.keys(await environmentOf(event.result))
    expect([event.part, names.filter((name) => name.startsWith('MESH_'))]).toEqual([event.part, []])
  }
  await first.stop()
  const second = await start()
  expect((await environmentOf(second.run.url)).MESH_SIGNING_KEY_FILE).toBe(file)
  expect(readFileSync(file, 'utf8')).toBe(key)
})

test('a folder of the lab cannot be a site, nor the reverse, and nothing is started', async () => {
  await (await start()).stop()
  await expect(start(given, {}, false)).rejects.toThrow(`${stateDir} has the lab, and a site needs its own folder`)
  const site = join(directory.path, 'site')
  const other = await freshDatabase()
  try {
    stateDir = site
    await (await start({ ...given, DATABASE_URL: other.url }, {}, false)).stop()
    const before = readdirSync(site).sort()
    await expect(start()).rejects.toThrow(`${site} has a site, and the lab needs its own folder`)
    expect(readdirSync(site).sort()).toEqual(before)
  } finally {
    await other.drop()
  }
})

test('the lab refuses a database with incidents of another before it changes anything', async () => {
  const first = await start()
  const db = connect(database.url)
  await db
    .insertInto('incident')
    .values({ id: newId('inc'), type: 'host_down', severity: 'critical', title: 'A host of the site', status: 'open' })
    .execute()
  await db.destroy()
  await first.stop()
  // Its own incidents are no reason.
  await (await start()).stop()
  stateDir = join(directory.path, 'another')
  await expect(start()).rejects.toThrow('DATABASE_URL names a database with incidents of another Nightshift')
})
