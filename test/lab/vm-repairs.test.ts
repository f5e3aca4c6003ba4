import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { labDirectory, type RunningLab, runLab } from './running-lab.ts'

const directory = labDirectory()
let lab: RunningLab
let vm: { id: string; host: string }
const host = () => ({ host: vm.host })

beforeAll(async () => {
  lab = await runLab(directory.path)
  const [first] = (await lab.inventory()).vms
  vm = { id: first!.id, host: first!.host! }
}, 60_000)
afterAll(async () => {
  await lab.stop()
  directory.remove()
}, 60_000)

const now = async () => (await lab.inventory()).vms.find(({ id }) => id === vm.id)!

test('a VM that is restarted is another process on the same host, and its start is later', async () => {
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

test('a VM that is stopped stays stopped until it is started, and a repeat changes nothing', async () => {
  for (const _ of [1, 2]) {
    const { answer } = await lab.write('s1', `/v1/vms/${vm.id}/stop`, host())
    expect(answer.status).toBe('done')
  }
  expect(await now()).toMatchObject({ running: false, startedAt: null })
  expect((await lab.write('r2', `/v1/vms/${vm.id}/restart`, host())).answer).toMatchObject({
    ...{ status: 'failed', detail: `${vm.id} does not run` },
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
