import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { approvedWrite } from '../../support/announced.ts'
import { useDatabase } from '../../support/database.ts'
import { compileCache, eventually, freePort } from '../../support/directory.ts'
import { type ScriptedProxmox, startScriptedProxmox, token } from './scripted-proxmox.ts'

const database = useDatabase()
const running = new Set<ChildProcess>()
let printed = ''
let pve: ScriptedProxmox
let url: string
let admin: string

beforeAll(async () => {
  pve = await startScriptedProxmox()
  url = `http://127.0.0.1:${await freePort()}`
  const operatorId = await ensureOperator(database.db, 'admin', 'admin')
  admin = await createToken(database.db, { name: 'admin', role: 'admin', operatorId })
})
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL')
  await pve.close()
})

async function started(): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['api/main.ts'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compileCache,
      LOG_LEVEL: 'debug',
      DATABASE_URL: database.url,
      PORT: new URL(url).port,
      TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`,
      PROXMOX_URL: pve.server.url,
      PROXMOX_TOKEN: token,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (printed += bytes))
  await eventually('the API', async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200)
  return child
}

/** The headers of a write that a person approved, as a run sends it. */
async function asRun(tool: string, identity: Record<string, unknown>): Promise<Record<string, string>> {
  const agent = await createToken(database.db, { name: 'agent', role: 'agent', operatorId: null })
  const { as, key } = await approvedWrite({ db: database.db, tokens: { agent } }, tool, identity)
  return { authorization: `Bearer ${as}`, 'idempotency-key': key }
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
  running.delete(child)
}

async function ask(method: 'GET' | 'POST', path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json', ...headers },
    body: body && JSON.stringify(body),
  })
  return (await response.json()) as Record<string, never>
}

test('a migration of an API that is killed continues under the next API, which begins no second one', async () => {
  const first = await started()
  const body = { intent: 'drain', host_ids: ['pve1'], vm_ids: null, use_rack_constraints: false }
  const plan = await ask('POST', '/placement/proposals', body)
  expect(plan).toMatchObject({ state: 'planned', steps: [{ vm: 'vm-101', from: 'pve1' }] })

  // Begun at the cluster, and no answer with its task ever comes.
  Object.assign(pve, { answer: 'held', course: { looks: 3, end: 'OK' } })
  const headers = {
    'if-match': String(plan.stateFingerprint),
    ...(await asRun('execute_migration', { plan: plan.planDigest })),
  }
  ask('POST', `/placement/proposals/${plan.proposal_id}/execute`, { reason: 'new memory' }, headers).catch(() => {})
  await eventually('the migration', () => pve.begun.length === 1)
  await killed(first)

  await started()
  const row = await database.db.selectFrom('effect').select('key').executeTakeFirstOrThrow()
  const effect = await eventually('the effect to be settled', async () => {
    const answer = await ask('GET', `/effects/${encodeURIComponent(row.key)}`)
    return answer.status === 'running' ? null : answer
  })
  expect(effect).toMatchObject({ status: 'done', result: { failed: 0 } })
  expect(pve.begun).toHaveLength(1)
  expect(printed).toContain('the API is ready')
  expect(printed).not.toContain(token.split('=')[1])
})

test('a restart that an API accepted before it was killed is found by the next API', async () => {
  const [first] = running
  Object.assign(pve, { answer: 'held', course: { looks: 1, end: 'OK' }, begun: [] })
  pve.guest(102).uptime = 86_400
  const { stateFingerprint } = await ask('GET', '/vms/vm-102/restart?dry_run=true')
  const headers = { 'if-match': String(stateFingerprint), ...(await asRun('vm_restart', { id: 'vm-102' })) }
  ask('POST', '/vms/vm-102/restart', { reason: 'it hangs' }, headers).catch(() => {})
  await eventually('the restart', () => pve.begun.length === 1)
  await killed(first!)

  const { key, status } = await database.db
    .selectFrom('effect')
    .select(['key', 'status'])
    .where('tool', '=', 'vm_restart')
    .executeTakeFirstOrThrow()
  // Nobody guesses how it ended.
  expect(status).toBe('running')
  await started()
  const effect = await eventually('the effect to be settled', async () => {
    const answer = await ask('GET', `/effects/${encodeURIComponent(key)}`)
    return answer.status === 'running' ? null : answer
  })
  expect(effect).toMatchObject({ status: 'done', result: { before: { host: 'pve2', running: true } } })
  expect(pve.begun).toMatchObject([{ path: '/api2/json/nodes/pve2/qemu/102/status/reboot' }])
})
