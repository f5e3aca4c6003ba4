import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { undosOf } from '../../db/writes/undo.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { type Relay, startRelay } from '../support/temporal-proxy.ts'

// An undo whose process is killed after the platform did it, and before anybody heard of it.

let spine: Spine
let toApi: Relay
let toLab: Relay

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook'] })
  toLab = await startRelay(spine.labUrl)
  await startApi()
  toApi = await startRelay(spine.url)
  await startWorker()
})
afterAll(async () => {
  await spine?.stop()
  await toApi?.stop()
  await toLab?.stop()
})

const startApi = () => spine.start('api', { PLATFORM_URL: toLab.url })
const startWorker = () => spine.start('worker', { CORE_API_URL: toApi.url })

/** A VM that an admin stopped: the key of that write. */
async function stop(vm: string): Promise<string> {
  const dry = await spine.get<{ stateFingerprint: string }>(`/vms/${vm}/stop?dry_run=true`)
  const headers = { 'if-match': dry.stateFingerprint }
  const { body } = await spine.post(`/vms/${vm}/stop`, { reason: 'maintenance' }, { headers })
  expect(body).toMatchObject({ status: 'done' })
  return String(body.key)
}

const ask = (key: string) =>
  spine.post(`/effects/${encodeURIComponent(key)}/undo`, { reason: 'it was the wrong one' }).catch(() => null)
const standingOf = async (key: string) => (await undosOf(spine.db, key)).map(({ standing }) => standing)

async function expectUndoneOnce(vm: string, key: string): Promise<void> {
  await spine.until('the end of the undo', async () => (await standingOf(key))[0] !== 'under_way')
  expect(await standingOf(key)).toEqual(['undone'])
  expect((await ask(key))?.body).toMatchObject({ code: 'UNDONE_ALREADY' })
  const starts = (await spine.effects()).filter(({ request }) => request.includes(`/vms/${vm}/start`))
  expect(starts).toMatchObject([{ runs: 1, status: 'done' }])
  expect(await spine.get(`/vms/${vm}`)).toMatchObject({ running: true })
  const [{ incidentId = '' } = {}] = await undosOf(spine.db, key)
  const rows = (await spine.events(incidentId)).filter(({ kind }) => kind === 'tool_finished')
  expect(rows).toMatchObject([{ metadata: { tool: 'vm_start', outcome: 'done' } }])
  expect(await spine.get(`/incidents/${incidentId}/verify`)).toMatchObject({ ok: true })
}

test('a worker killed during an undo leaves it in progress for the next request, and it is done once', async () => {
  const key = await stop('vm-104')
  const held = toApi.holdNext((method, path) => method === 'POST' && path.endsWith('/vms/vm-104/start'))
  const first = ask(key)
  await held
  await spine.kill('worker')
  expect(await standingOf(key)).toEqual(['under_way'])
  expect((await ask(key))?.body).toMatchObject({ code: 'UNDO_UNDER_WAY' })
  await startWorker()
  await expectUndoneOnce('vm-104', key)
  await first
})

test('an API server killed during an undo asks the platform for the outcome, and does not repeat it', async () => {
  const key = await stop('vm-105')
  const held = toLab.holdNext((method, path) => method === 'POST' && path.endsWith('/vms/vm-105/start'))
  const first = ask(key)
  await held
  await spine.kill('api')
  expect(await first).toBeNull()
  expect(await standingOf(key)).toEqual(['under_way'])
  await startApi()
  expect((await ask(key))?.body).toMatchObject({ code: expect.stringMatching(/^UNDO_UNDER_WAY$|^UNDONE_ALREADY$/) })
  await expectUndoneOnce('vm-105', key)
})

test('an undo that a person takes over while its processes are dead has an unknown outcome', async () => {
  const key = await stop('vm-106')
  const held = toLab.holdNext((method, path) => method === 'POST' && path.endsWith('/vms/vm-106/start'))
  const first = ask(key)
  await held
  await spine.kill('api')
  await first
  await spine.kill('worker')
  const [{ incidentId = '' } = {}] = await undosOf(spine.db, key)
  await startApi()
  expect((await spine.post(`/incidents/${incidentId}/escalate`, { reason: 'we look ourselves' })).status).toBe(200)
  expect(await standingOf(key)).toEqual(['unclear'])
  expect((await ask(key))?.body).toMatchObject({ code: 'UNDO_UNCLEAR' })
  await startWorker()
})
