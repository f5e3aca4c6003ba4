import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'api', 'worker'], environment: { AGENT_ENABLED: 'false' } })
})
afterAll(async () => {
  await spine?.stop()
})

type Vm = { id: string; running: boolean; host: string }
const vmOf = (id: string) => spine.get<Vm>(`/vms/${id}`)

async function power(id: string, action: string) {
  const dry = await spine.get<{ stateFingerprint: string }>(`/vms/${id}/${action}?dry_run=true`)
  const headers = { 'if-match': dry.stateFingerprint }
  return await spine.post(`/vms/${id}/${action}`, { reason: 'maintenance' }, { headers })
}
const undo = (key: unknown, more: object = {}, token?: string) =>
  spine.post(`/effects/${encodeURIComponent(String(key))}/undo`, { reason: 'the wrong VM', ...more }, token ? { token } : {})

test('a VM that was stopped by mistake runs again where it was', async () => {
  const { items } = await spine.get<{ items: Vm[] }>('/vms?limit=100')
  const [vm, other] = items.filter(({ running }) => running)
  const stopped = await power(vm!.id, 'stop')
  console.log(stopped.body)
  console.log(await spine.get(`/effects/${encodeURIComponent(String(stopped.body.key))}/undo`))
  const back = await undo(stopped.body.key)
  console.log(back.body)
  expect(await vmOf(vm!.id)).toMatchObject({ running: true, host: vm!.host })
  console.log((await undo(stopped.body.key)).body)
  const again = await power(other!.id, 'stop')
  await power(other!.id, 'start')
  console.log((await undo(again.body.key)).body)
  console.log((await spine.events(String(stopped.body.incidentId))).map((e) => `${e.kind} ${e.detail}`))
  console.log((await spine.events(String(again.body.incidentId))).map((e) => `${e.kind} ${e.detail}`))
  console.log((await spine.events(String(back.body.incidentId))).map((e) => `${e.kind} ${e.detail}`))
  console.log(await spine.get(`/incidents/${again.body.incidentId}/undo`))
})
