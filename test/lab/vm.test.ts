import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createPlatformClient, type PlatformClient } from '../../clients/platform.ts'
import { tools } from '../../tools/registry.ts'
import { approvedWrite } from '../support/announced.ts'
import { corePort, useApi } from '../support/api.ts'
import { labDirectory, platformToken, type RunningLab, runLab } from '../support/running-lab.ts'

const directory = labDirectory()
let lab: RunningLab
let vm: { id: string; host: string }
// The lab is there once a test asks.
const platform = new Proxy({} as PlatformClient, {
  get: (_, name) => createPlatformClient({ baseUrl: lab.url, token: platformToken })[name as keyof PlatformClient],
})
const api = useApi(() => ({ platform }))
const host = () => ({ host: vm.host })

beforeAll(async () => {
  lab = await runLab(directory.path)
  const [first] = (await lab.inventory()).vms
  vm = { id: first!.id, host: first!.host! }
})
afterAll(async () => {
  await lab.stop()
  directory.remove()
})

const now = async () => (await lab.inventory()).vms.find(({ id }) => id === vm.id)!

test('a restarted VM is another process on the same host, with a later start', async () => {
  const before = await now()
  expect(before).toMatchObject({ running: true, busy: null, startedAt: expect.any(String) })
  // The same run has the same start, whenever it is asked.
  expect((await now()).startedAt).toBe(before.startedAt)
  const { answer } = await lab.write('r1', `/v1/vms/${vm.id}/restart`, host())
  expect(answer).toMatchObject({ status: 'done', result: { vm: vm.id, host: vm.host } })
  const after = await now()
  expect(after).toMatchObject({ running: true, host: vm.host })
  expect(Date.parse(after.startedAt!)).toBeGreaterThan(Date.parse(before.startedAt!))
})

test('a stopped VM stays stopped until it is started, and a repeat changes nothing', async () => {
  for (const _ of [1, 2]) {
    const { answer } = await lab.write('s1', `/v1/vms/${vm.id}/stop`, host())
    expect(answer.status).toBe('done')
  }
  expect(await now()).toMatchObject({ running: false, startedAt: null })
  expect((await lab.write('r2', `/v1/vms/${vm.id}/restart`, host())).answer).toMatchObject({
    status: 'failed',
    detail: `${vm.id} does not run`,
  })
  expect((await lab.write('s2', `/v1/vms/${vm.id}/start`, host())).answer.status).toBe('done')
  expect(await now()).toMatchObject({ running: true, host: vm.host })
  expect((await lab.control.effects()).find(({ key }) => key === 's1')).toMatchObject({ runs: 1 })
})

test('a VM that runs elsewhere is not stopped', async () => {
  const other = (await lab.inventory()).hosts.find(({ id }) => id !== vm.host)!.id
  const { answer } = await lab.write('e1', `/v1/vms/${vm.id}/stop`, { host: other })
  expect(answer).toMatchObject({ status: 'failed', detail: `${vm.id} runs on ${vm.host}, not on ${other}` })
  expect((await now()).running).toBe(true)
})

const core = corePort(api)

test('each repair goes through the core API to a real process, and its tool proves it by reading', async () => {
  for (const [action, observed] of [
    ['restart', `${vm.id} runs on ${vm.host}, since 20`],
    ['stop', `${vm.id} is stopped on ${vm.host}`],
    ['start', `${vm.id} runs on ${vm.host}`],
  ]) {
    const key = `core-${action}`
    const tool = tools.get(`vm_${action}`)!
    const args = { id: vm.id, reason: 'it does not answer' }
    const context = { core, incidentId: 'inc', stepKey: key, ifMatch: null }
    const { stateFingerprint, targets } = await tool.prepare!(args, context)
    expect(targets).toEqual([
      { kind: 'vm', id: vm.id },
      { kind: 'host', id: vm.host },
    ])
    const answer = await api.post(`/vms/${vm.id}/${action}`, {
      ...(await approvedWrite(api, tool.name, { id: vm.id })),
      body: { reason: args.reason },
      headers: { 'if-match': stateFingerprint },
    })
    expect([answer.status, answer.body.detail]).toEqual([200, expect.stringContaining(vm.id)])
    const looked = { ...context, stepKey: String(answer.body.key) }
    expect(await tool.postcondition!.check(args, null, looked)).toMatchObject({
      holds: true,
      observed: expect.stringContaining(observed!),
    })
    // Decided on the state of before: the same order again is about another state.
    const again = await api.post(`/vms/${vm.id}/${action}`, {
      body: { reason: args.reason },
      key: `${key}-again`,
      headers: { 'if-match': '0'.repeat(64) },
    })
    expect([action, again.status]).toEqual([action, 412])
  }
})

test('a VM whose host was killed needs a plan, not a start', async () => {
  await lab.control.break('host_down', vm.host)
  api.api.deps.state.forget()
  const { status, body } = await api.get(`/vms/${vm.id}/start?dry_run=true`)
  expect([status, body.code, body.detail]).toEqual([409, 'HOST_DOWN', expect.stringContaining('schedule_ha_proposal')])
})
