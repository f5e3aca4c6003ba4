import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createCoreClient } from '../clients/core.ts'
import { createToken, ensureOperator } from '../db/access/tokens.ts'
import { ingestAlert } from '../db/alerts/ingest-body.ts'
import { connect, type Db } from '../db/connect.ts'
import { claimIncident } from '../db/incidents/incidents.ts'
import { syncInventory } from '../db/inventory/sync-inventory.ts'
import type { Alert } from '../domain/alert.ts'
import type { CapabilityAnswer } from '../domain/mesh.ts'
import type { Tool, ToolContext } from '../domain/tool.ts'
import { signed, writePublicKey } from '../mesh/sign.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { ensureMeshKeys } from '../start/mesh-keys.ts'
import { startPostgres } from '../start/postgres.ts'
import { freePort } from '../start/process.ts'
import { announced } from '../test/support/announced.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { scriptedPlatform } from '../test/support/scripted-platform.ts'
import { tools } from '../tools/registry.ts'
import { meshConnections } from './mesh-connections.ts'
import { median, percentile, report, startApi } from './stage.ts'

const entry = fileURLToPath(new URL('../cli/main.ts', import.meta.url))

/**
 * Starts an agent over a state directory that contains its manifest and root key. Resolves when it
 * listens.
 */
async function startAgent(state: string, listen: string): Promise<{ child: ChildProcess; url: string }> {
  const args = ['mesh', 'agent', '--state', state, '--listen', listen]
  const child = spawn(process.execPath, [entry, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += chunk
      const found = /Listening on (\S+):/.exec(said)?.[1]
      if (found) resolve(found)
    })
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}: ${said}`)))
  })
  return { child, url }
}

const on = 'node-osl-1'

/**
 * Measures reads of a small file, in ms. A read starts in the tool registry, passes core API,
 * PostgreSQL (which may lose writes), signature, HTTP, request check, guard and journal, and
 * returns. API and agent are separate processes. The row with which a run announces the read is not
 * included.
 */
async function wholePath(calls: number): Promise<number[]> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url)
  const api = await startApi({ databaseUrl: postgres.url, dir, environment: { ...ensureMeshKeys(dir) } })
  const stop = await enrolledAgent(db, api.url, dir).catch((error: unknown) => error as Error)
  try {
    if (stop instanceof Error) throw stop
    const apiKey = await createToken(db, { name: 'worker', role: 'agent', operatorId: null })
    const core = createCoreClient({ baseUrl: api.url, apiKey })
    const tool = tools.get('fs_read') as Tool
    const incidentId = await claimed(db)
    const identity = { on, path: join(dir, 'files', 'small') }
    const took: number[] = []
    for (let n = 0; n < calls + warmUp; n += 1) {
      const stepKey = await announced(db, incidentId, tool.name, identity, null, 'read')
      const context: ToolContext = { core, incidentId, stepKey, ifMatch: null }
      const startedAt = performance.now()
      const answer = await tool.run(identity, context)
      if (n >= warmUp) took.push(performance.now() - startedAt)
      if (!answer.ok) throw new Error(`fs_read: ${answer.problem.code} ${answer.problem.detail}`)
    }
    return took
  } finally {
    if (!(stop instanceof Error)) stop()
    await api.stop()
    await db.destroy()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const warmUp = 50

/**
 * Sets up a device as an admin and the device's user do: registers it, enrols it, and starts its
 * agent. Returns a function that ends the agent.
 */
async function enrolledAgent(db: Db, apiUrl: string, dir: string): Promise<() => void> {
  await syncInventory(db, scriptedPlatform().inventoryState)
  const operatorId = await ensureOperator(db, 'admin', 'admin')
  const token = await createToken(db, { name: 'admin', role: 'admin', operatorId })
  const [state, files] = [join(dir, 'state'), join(dir, 'files')]
  for (const each of [state, files]) mkdirSync(each)
  writeFileSync(join(files, 'small'), 'some lines\n'.repeat(20))
  const address = `127.0.0.1:${await freePort()}`
  const terms = { capabilities: [], roots: [{ path: files, writable: false }] }
  await ask(`${apiUrl}/api/v1/devices/${on}`, 'PUT', token, { url: `http://${address}`, mode: 'user', terms })
  const minted = await ask(`${apiUrl}/api/v1/devices/${on}/enrolment`, 'POST', token, {})
  const given = await ask(`${apiUrl}/mesh/enrolments`, 'POST', token, { token: minted.token })
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(given.manifest))
  writeFileSync(join(state, 'root-key'), String(given.root_public_key))
  const { child } = await startAgent(state, address)
  return () => child.kill('SIGKILL')
}

export async function claimed(db: Db): Promise<string> {
  const alert: Alert = {
    source: 'alertmanager',
    fingerprint: 'bench',
    status: 'firing',
    name: 'bench',
    title: 'bench',
    severity: 'warning',
    severitySource: 'alert',
    severityWord: 'warning',
    labels: {},
    annotations: {},
    startsAt: new Date().toISOString(),
    endsAt: null,
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: [],
    links: { generator: null, external: null, runbook: null },
  }
  const { incidentId } = await ingestAlert(db, alert)
  if (!incidentId) throw new Error('no incident')
  const workflowId = `investigate:${incidentId}:1`
  await db.transaction().execute((trx) =>
    claimIncident(trx, {
      incidentId,
      attempt: 1,
      workflowId,
      role: 'leader',
      groupId: 'grp_bench',
      timeBudgetSeconds: 86_400,
    }),
  )
  return incidentId
}

async function ask(url: string, method: string, token: string, body: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(url, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${new URL(url).pathname}: ${response.status} ${await response.text()}`)
  return (await response.json()) as Record<string, unknown>
}

const rounds = Number(process.env.MESH_CALLS ?? 500)
const lanes = 4

/**
 * Measures reads on loopback through HTTP, request check, guard and journal, with and without a
 * separate process. Compares these reads with a direct start of the process. Also measures the
 * whole path from the tool registry.
 */
export async function mesh(): Promise<void> {
  const device = await startDevice()
  try {
    const idleMb = device.residentMb()
    await device.measure(device.uptime, 50)
    const alone = await spawns('uptime', 100)
    const commands = await device.measure(device.uptime, rounds)
    const reads = await device.measure(device.read, rounds)
    const before = device.cpuSeconds()
    const perSecond = await device.perSecond(device.read, rounds * 4)
    const cpuPerCallMs = ((device.cpuSeconds() - before) * 1000) / (rounds * 4)
    const whole = await wholePath(rounds)
    const connections = await meshConnections()
    report('mesh', {
      calls: rounds,
      'uptime by itself, median (ms)': round(median(alone)),
      'shell.exec uptime, median (ms)': round(median(commands)),
      'shell.exec uptime, 95th (ms)': round(percentile(commands, 95)),
      'over the process itself, median (less than 15 ms)': round(median(commands) - median(alone)),
      'fs.read, median (ms)': round(median(reads)),
      'fs.read by the tool through the core API, median (ms)': round(median(whole)),
      'fs.read by the tool through the core API, 95th (ms)': round(percentile(whole, 95)),
      'reads a second, four at a time': Math.round(perSecond),
      'reads a second of one core of the agent (200 or more)': Math.round(1000 / cpuPerCallMs),
      'resident when idle (less than 80 MB)': round(idleMb),
      'resident afterwards (MB)': round(device.residentMb()),
      ...connections,
    })
  } finally {
    device.stop()
  }
}

type Ask = () => { capability: string; args: Record<string, unknown> }

type Agent = { url: string; controlKey: KeyObject }

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

async function startDevice() {
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-mesh-'))
  const state = join(directory, 'state')
  mkdirSync(state)
  const files = join(directory, 'files')
  mkdirSync(files)
  writeFileSync(join(files, 'small'), 'some lines\n'.repeat(20))
  const controlKey = writeManifest(state, files)
  const { child, url } = await startAgent(state, '127.0.0.1:0')
  await new Promise((resolve) => setTimeout(resolve, 1_000))

  const agent = { url, controlKey }
  const status = (name: string) =>
    new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
  return {
    uptime: () => ({ capability: 'shell.exec', args: { argv: ['uptime'] } }),
    read: () => ({ capability: 'fs.read', args: { path: join(files, 'small') } }),
    async measure(ask: Ask, calls: number): Promise<number[]> {
      const took: number[] = []
      for (let n = 0; n < calls; n += 1) {
        const startedAt = performance.now()
        await call(agent, ask())
        took.push(performance.now() - startedAt)
      }
      return took
    },
    async perSecond(ask: Ask, calls: number): Promise<number> {
      const startedAt = performance.now()
      let left = calls
      const lane = async () => {
        while (left-- > 0) await call(agent, ask())
      }
      await Promise.all(Array.from({ length: lanes }, lane))
      return (calls * 1000) / (performance.now() - startedAt)
    },
    residentMb: () => Number(status('VmRSS')?.[1]) / 1024,
    /** Counts only the agent, without its child processes. */
    cpuSeconds() {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
      return (Number(fields[11]) + Number(fields[12])) / 100
    },
    stop() {
      child.kill('SIGKILL')
      rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    },
  }
}

/**
 * Writes the manifest of a device that may read `files`. Returns the key that signs the device's
 * requests.
 */
function writeManifest(state: string, files: string): KeyObject {
  const root = generateKeyPairSync('ed25519')
  const control = generateKeyPairSync('ed25519')
  const manifest = {
    id: 'bench',
    device: 'bench-1',
    mode: 'user',
    capabilities: [],
    roots: [{ path: files, writable: false }],
    keys: [{ id: 'cp', public_key: writePublicKey(control.publicKey), not_after: null }],
    issued_at: inSeconds(-60),
    expires_at: inSeconds(3600),
  }
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(signed(manifest, { id: 'root', key: root.privateKey })))
  writeFileSync(join(state, 'root-key'), writePublicKey(root.publicKey))
  return control.privateKey
}

async function call({ url, controlKey }: Agent, { capability, args }: ReturnType<Ask>): Promise<void> {
  const request = {
    request_id: `req_${randomBytes(12).toString('hex')}`,
    nonce: randomBytes(16).toString('base64'),
    issued_at: inSeconds(0),
    deadline: inSeconds(60),
    device: 'bench-1',
    capability,
    args,
    idempotency_key: randomBytes(12).toString('hex'),
    grant: null,
  }
  const body = JSON.stringify(signed(request, { id: 'cp', key: controlKey }))
  const answer = (await (await fetch(`${url}/capability`, { method: 'POST', body })).json()) as CapabilityAnswer
  if (!answer.ok) throw new Error(`${capability}: ${answer.error?.code} ${answer.error?.message}`)
}

/** Measures a program that is started directly. */
async function spawns(program: string, times: number): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < times; n += 1) {
    const startedAt = performance.now()
    await new Promise((resolve) => spawn(program, { stdio: 'ignore' }).once('exit', resolve))
    took.push(performance.now() - startedAt)
  }
  return took
}

const round = (value: number): number => Number(value.toFixed(1))
