import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { auditDevice } from '../../cli/mesh/journal.ts'
import { connectionOf } from '../../db/inventory/device-connections.ts'
import { syncInventory } from '../../db/inventory/sync-inventory.ts'
import { openMesh } from '../../effects/devices/executor.ts'
import { verifyChain } from '../../mesh/agent/chain.ts'
import { ensureMeshKeys } from '../../start/mesh-keys.ts'
import { announced } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { callingAgent, knownToCallOut } from '../support/calls-out.ts'
import { startCuttingRelay } from '../support/cutting-relay.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { type MeshApi, usedApproval } from '../support/mesh-api.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

/** 200 take a quarter of an hour. */
const kills = Number(process.env.CONNECTION_KILLS ?? 10)
const perRound = 2
const on = 'node-osl-1'

const dir = temporaryDirectory()
const keyFiles = ensureMeshKeys(dir.path)
const opened = openMesh({
  rootKeyFile: keyFiles.MESH_ROOT_KEY_FILE,
  signingKeyFile: keyFiles.MESH_SIGNING_KEY_FILE,
  nextKeyFile: null,
})
const api = useApi(() => ({ mesh: opened })) as MeshApi
const main = fileURLToPath(new URL('../../api/main.ts', import.meta.url))

type ApiProcess = { port: number; child: ChildProcess | null; isUp: boolean }
const processes: ApiProcess[] = []
const up = () => processes.filter(({ isUp }) => isUp)
const anyUp = () => up()[randomInt(up().length)] as ApiProcess

beforeAll(async () => {
  await syncInventory(api.db, scriptedPlatform().inventoryState)
  for (let n = 0; n < 2; n += 1) processes.push({ port: await freePort(), child: null, isUp: false })
  await Promise.all(processes.map(start))
})
afterAll(() => {
  for (const { child } of processes) child?.kill('SIGKILL')
  dir.remove()
})

async function start(one: ApiProcess): Promise<void> {
  one.child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', main], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: api.url,
      PORT: String(one.port),
      LOG_LEVEL: 'fatal',
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      ...keyFiles,
    },
  })
  await eventually('a process of the API', () =>
    fetch(`http://127.0.0.1:${one.port}/livez`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  one.isUp = true
}

async function killApi(one: ApiProcess | undefined): Promise<void> {
  await restarted
  if (!one?.child) return
  one.isUp = false
  const gone = new Promise((resolve) => one.child?.once('exit', resolve))
  one.child.kill('SIGKILL')
  await gone
  // The other one carries on meanwhile.
  restarted = start(one)
}
let restarted: Promise<void> = Promise.resolve()

async function ask(path: string, init: { body?: object; key?: string; as?: string } = {}) {
  const { port } = anyUp()
  return await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
    method: init.body ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${init.as ?? api.tokens.agent}`,
      'content-type': 'application/json',
      ...(init.key && { 'idempotency-key': init.key }),
    },
    ...(init.body && { body: JSON.stringify(init.body) }),
  }).then(
    async (response) => ({ status: response.status, body: (await response.json()) as Record<string, unknown> }),
    () => null,
  )
}

/**
 * Sends a write as a run does: under its key until somebody says how it ended, and never under
 * another one.
 */
async function write(command: string): Promise<{ key: string; status: string }> {
  const incidentId = await claimedIncident(api.db)
  const identity = { on, command }
  const approvalId = await usedApproval(api, incidentId, 'shell_eval', identity)
  const key = await announced(api.db, incidentId, 'shell_eval', identity, approvalId)
  const body = { capability: 'shell.eval', args: { command }, reason: 'the test' }
  for (;;) {
    const known = await ask(`/effects/${encodeURIComponent(key)}`)
    const status = String(known?.body.status)
    if (known?.status === 200 && status !== 'running') return { key, status }
    const sent = known?.status === 404 ? await ask(`/devices/${on}/calls`, { body, key }) : null
    if (process.env.KILL_LOG && sent && sent.status >= 400)
      appendFileSync(process.env.KILL_LOG, `${JSON.stringify(sent)}\n`)
    await sleep(100)
  }
}

const fates = ['api that holds it', 'other api', 'agent', 'cut', 'cut in a frame'] as const

test(
  `through ${kills} deaths of either side and of the network between them each write is done once, and both records agree`,
  async () => {
    const files = temporaryDirectory()
    const counter = join(files.path, 'counter')
    const relay = await startCuttingRelay(() => (up().length === 0 ? null : anyUp().port))
    const token = await knownToCallOut(api, on, {
      mode: 'all',
      terms: { capabilities: [], roots: [{ path: files.path, writable: true }] },
    })
    const agent = callingAgent()
    await agent.up(['--connect', relay.url, '--token', token])
    await eventually('the connection', async () => (await connectionOf(api.db, on))?.isConnected)

    async function die(fate: (typeof fates)[number]): Promise<void> {
      await sleep(randomInt(120))
      if (fate.includes('api')) await restarted
      const holder = (await connectionOf(api.db, on))?.process
      const holds = processes.find(({ child }) => holder === `${hostname()}:${child?.pid}`)
      if (fate === 'api that holds it') await killApi(holds)
      else if (fate === 'other api') await killApi(processes.find((one) => one !== holds))
      else if (fate === 'cut') relay.cut()
      else if (fate === 'cut in a frame') relay.cutWithin(randomInt(2_000))
      else {
        await agent.kill()
        await agent.up()
      }
    }

    const said = new Map<string, { fate: string; status: string }>()
    for (let round = 0; round < kills; round += 1) {
      const fate = fates[round % fates.length] as (typeof fates)[number]
      const texts = Array.from({ length: perRound }, (_, n) => `w${round}-${n}`)
      const writes = texts.map((word) => write(`echo ${word} >> ${counter}; sleep 0.0${randomInt(10)}; true`))
      const [ended] = await Promise.all([Promise.all(writes), die(fate)])
      if (process.env.KILL_LOG)
        appendFileSync(
          process.env.KILL_LOG,
          `${new Date().toISOString()} ${round} ${fate} ${ended.map((e) => e.status)}\n`,
        )
      for (const [n, word] of texts.entries()) said.set(word, { fate, status: ended[n]?.status ?? '' })
    }
    const times = new Map<string, number>()
    for (const word of existsSync(counter) ? readFileSync(counter, 'utf8').trim().split('\n') : [])
      times.set(word, (times.get(word) ?? 0) + 1)
    const wrong = [...said].filter(([word, { status }]) => {
      const count = times.get(word) ?? 0
      return status === 'done' ? count !== 1 : count > 1 || status === 'failed' ? count > 0 : false
    })
    expect(wrong).toEqual([])
    expect([...times.keys()].filter((word) => !said.has(word))).toEqual([])
    const counted = Object.groupBy(said.values(), ({ status }) => status)
    console.log(
      `${kills} deaths, ${said.size} writes: ${Object.entries(counted)
        .map(([status, all]) => `${all?.length} ${status}`)
        .join(', ')}`,
    )
    expect(counted.done?.length ?? 0).toBeGreaterThan(said.size / 2)

    await restarted
    await eventually('the connection', async () => (await connectionOf(api.db, on))?.isConnected)
    // An agent that was just killed still counts as connected, until its connection is missed.
    const audit = await auditDevice(
      (path) =>
        eventually(path, async () => {
          const answer = await ask(path, { as: api.tokens.admin })
          return answer?.status === 200 && answer.body
        }),
      on,
    )
    expect(audit.problems).toEqual([])
    expect(verifyChain(join(agent.state, 'journal'))).toMatchObject({ ok: true })
    // A request to a process that died stays until its time is over.
    await eventually('no request to be left', async () => {
      const left = await api.db
        .selectFrom('meshRelay')
        .select(({ fn }) => fn.countAll().as('n'))
        .executeTakeFirst()
      return Number(left?.n) === 0
    })
    await relay.stop()
    files.remove()
  },
  120_000 + kills * 20_000,
)
