import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createToken, ensureOperator } from '../db/access/tokens.ts'
import { connect, type Db } from '../db/connect.ts'
import { listConnections } from '../db/inventory/device-connections.ts'
import { addDevice, type DeviceRow, deviceById } from '../db/inventory/devices.ts'
import { markEnrolled } from '../db/inventory/enrolments.ts'
import { deviceTerms } from '../domain/device.ts'
import { type Mesh, openMesh, renewManifest } from '../effects/devices/executor.ts'
import { publicHalf, writePublicKey } from '../mesh/sign.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { ensureMeshKeys } from '../start/mesh-keys.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { median, percentile, startApi } from './stage.ts'

const wanted = Number(process.env.MESH_CONNECTIONS ?? 1_000)
const calls = Number(process.env.MESH_CALLS ?? 500)
const processes = 4
const lightAgents = fileURLToPath(new URL('./light-agents.ts', import.meta.url))

type Enrolled = { device: string; key: string }

/**
 * Measures agents that connect to one API process, with real connections and keys: the memory that
 * they cost the API, and how long the API waits for the result of a read. The agents respond at
 * once, so that only the path is measured.
 */
export async function meshConnections(): Promise<Record<string, number | string>> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: `${dir}/postgres`, durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url)
  const keyFiles = ensureMeshKeys(dir)
  const api = await startApi({ databaseUrl: postgres.url, dir, environment: { ...keyFiles } })
  const children: ChildProcess[] = []
  try {
    const mesh = openMesh({
      rootKeyFile: keyFiles.MESH_ROOT_KEY_FILE,
      signingKeyFile: keyFiles.MESH_SIGNING_KEY_FILE,
      nextKeyFile: null,
    }) as Mesh
    const operatorId = await ensureOperator(db, 'admin', 'admin')
    const token = await createToken(db, { name: 'admin', role: 'admin', operatorId })
    const agents: Enrolled[] = []
    for (let n = 0; n < wanted; n += 1) agents.push(await enrolled(db, mesh, `light-${n}`))
    await timed(api.url, token, agents[0]?.device ?? '').catch(() => 0)
    await sleep(5_000)
    const before = api.residentMb()
    const audience = createHash('sha256').update(publicHalf(mesh.keys.root)).digest('hex')
    const startedAt = performance.now()
    const share = Math.ceil(wanted / processes)
    for (let n = 0; n < processes; n += 1) {
      const own = agents.slice(n * share, (n + 1) * share)
      children.push(await connected({ api: api.url, audience, agents: own }))
    }
    const connectedSeconds = (performance.now() - startedAt) / 1_000
    // Waits long enough for one round of health requests to all agents.
    await sleep(45_000)
    const idle = api.residentMb()
    const took: number[] = []
    for (let n = 0; n < calls + 50; n += 1) {
      const ms = await timed(api.url, token, `light-${(n * 7) % wanted}`)
      if (n >= 50) took.push(ms)
    }
    const held = [...(await listConnections(db)).values()].filter(({ isConnected }) => isConnected)
    return {
      'agents that call out, connected': held.length,
      'until all were connected (s)': round(connectedSeconds),
      'resident memory of the API before (MB)': before,
      'more with all connected (MB, less than 300)': idle - before,
      'more after the calls (MB)': api.residentMb() - before,
      'a call to one of them, median (ms, less than 50)': round(median(took)),
      'a call to one of them, 95th (ms)': round(percentile(took, 95)),
      'load of the machine meanwhile': loadavg()
        .map((value) => value.toFixed(1))
        .join(' '),
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await api.stop()
    await db.destroy()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const round = (value: number): number => Number(value.toFixed(1))

/**
 * Enrols a device as an admin and the device's user would. Returns the key that its agent keeps.
 */
async function enrolled(db: Db, mesh: Mesh, device: string): Promise<Enrolled> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  await db.transaction().execute(async (trx) => {
    await addDevice(trx, {
      id: device,
      resource: { kind: 'node', id: device },
      url: null,
      urlEnv: null,
      mode: 'user',
      guests: null,
      timeoutSeconds: 60,
      toolsAllowed: [],
      enabled: true,
      terms: deviceTerms.parse({ capabilities: [], roots: [{ path: '/srv', writable: false }] }),
      manifestDays: 90,
    })
    await markEnrolled(trx, device, writePublicKey(publicKey))
    await renewManifest(trx, mesh, (await deviceById(trx, device)) as DeviceRow)
  })
  return { device, key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() }
}

async function connected(given: { api: string; audience: string; agents: Enrolled[] }): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', lightAgents], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin?.end(JSON.stringify(given))
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk) => String(chunk).includes('connected') && resolve())
    child.once('exit', (code) => reject(new Error(`light agents ended with ${code}`)))
  })
  return child
}

async function timed(url: string, token: string, device: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ capability: 'fs.read', args: { path: '/srv/small' } })
  const startedAt = performance.now()
  const answer = await fetch(`${url}/api/v1/devices/${device}/calls`, { method: 'POST', headers, body })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${device}: ${answer.status} ${text}`)
  return performance.now() - startedAt
}
