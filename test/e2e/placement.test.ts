import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { FaultName } from '../../lab/state.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
})
afterAll(async () => {
  await spine?.stop()
})
afterEach(async () => {
  await spine.until('every incident to end', async () => (await spine.incidents()).every(isOver))
  await spine.lab.heal()
})

const isOver = ({ status }: Incident) => ['resolved', 'escalated'].includes(status)

/** The incident about a host, once it has ended. */
const ended = (host: string) =>
  spine.until(`the end of ${host}`, async () =>
    (await spine.incidents()).find((incident) => incident.resource?.id === host && isOver(incident)),
  )

async function approve(approval: Approval, more: { hostIsOff?: string[] } = {}) {
  const as = { token: spine.tokens.approver }
  const said = { decision: 'approve', ...more }
  const { body } = await spine.post(`/approvals/${approval.id}/token`, said, as)
  return await spine.post(`/approvals/${approval.id}/decision`, { ...said, token: body.token }, as)
}

/** What the oracle has to say against it. */
async function complaints(fault: FaultName, target: string): Promise<string[]> {
  const { checks } = await spine.lab.oracle(fault, target)
  return checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
}

const steps = (events: IncidentEvent[]) =>
  events.flatMap((event) => (event.kind === 'step_finished' ? [`${event.metadata.step} ${event.metadata.status}`] : []))
const writes = (events: IncidentEvent[]) =>
  events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')
const movesOf = async (method: string) =>
  (await spine.lab.effects()).filter(({ request }) => request.includes(`/${method} `))

test('a host that has to be drained has its VMs migrated live, and a VM without room is reported to a person', async () => {
  await spine.lab.break('no_room', 'host-ams-5')
  await spine.lab.break('drain', 'host-osl-3')
  const asked = await spine.pendingApproval()
  expect(asked).toMatchObject({ tool: 'execute_migration', status: 'pending' })
  await approve(asked)

  const drained = await ended('host-osl-3')
  expect([drained.type, drained.status, drained.severity]).toEqual(['host_draining', 'resolved', 'warning'])
  expect(await complaints('drain', 'host-osl-3')).toEqual([])
  expect(await movesOf('migrate')).toMatchObject([{ status: 'done' }, { status: 'done' }, { status: 'done' }])
  expect(await movesOf('start')).toEqual([])

  const lost = await ended('host-ams-5')
  expect([lost.type, lost.status]).toEqual(['host_down', 'escalated'])
  expect(lost.resolution).toMatch(/vm-125/)
  expect(lost.category).toBe('no_tool')
  const events = await spine.events(lost.id)
  expect(JSON.stringify(events.find(({ kind }) => kind === 'escalated'))).toMatch(/\d+ MiB more on host-ams-\d/)
  expect(writes(events)).toEqual([])
  expect(await complaints('no_room', 'host-ams-5')).toEqual([])
})

test('one plan restarts the most important VMs of a dead rack, and a person is told which VMs stay down', async () => {
  await spine.lab.break('rack_down', 'osl-r1')
  const asked = await spine.pendingApproval()
  await approve(asked)
  const [first, second] = [await ended('host-osl-1'), await ended('host-osl-2')]
  expect(await complaints('rack_down', 'osl-r1')).toEqual([])
  const vms = (await spine.get<{ items: { id: string; running: boolean }[] }>('/vms')).items
  const running = vms.filter((vm) => vm.running).map((vm) => vm.id)
  expect(running).toEqual(expect.arrayContaining(['vm-101', 'vm-102']))
  const down = vms.filter((vm) => !vm.running).map((vm) => vm.id)
  expect(down.length).toBeGreaterThan(0)

  // The VMs of both hosts are in the one plan that was carried out.
  const logs = await Promise.all([first, second].map(({ id }) => spine.events(id)))
  expect(logs.flatMap(writes)).toHaveLength(1)
  for (const incident of [first, second]) {
    // Somebody is still down: that is no mitigation.
    expect([incident.status, incident.category]).toEqual(['escalated', 'no_tool'])
    for (const vm of down) expect(incident.resolution).toContain(vm)
  }
})

test("if nothing confirms that a dead host is off, its VMs start elsewhere only after a person's statement", async () => {
  await spine.lab.fencing(false)
  try {
    await spine.lab.break('host_down', 'host-ams-3')
    const asked = await spine.pendingApproval()
    expect(await approve(asked)).toMatchObject({ status: 403, body: { code: 'HOST_NOT_CONFIRMED' } })
    expect(await approve(asked, { hostIsOff: ['host-ams-3'] })).toMatchObject({ status: 200 })
    const incident = await ended('host-ams-3')
    // Its VMs run again; the host is for a person.
    expect(steps(await spine.events(incident.id)).sort()).toEqual(['1 OK', '2 OK', '3 OK'])
    expect(await complaints('host_down', 'host-ams-3')).toEqual([])
  } finally {
    await spine.lab.fencing(true)
  }
})

test('a failed step is a row, and the incident does not count as resolved', async () => {
  await spine.lab.break('step_fails', 'host-ams-1')
  await approve(await spine.pendingApproval())
  const incident = await ended('host-ams-1')
  expect(incident).toMatchObject({ status: 'escalated', category: null })
  expect(incident.resolution).toContain('vm-115 did not come up on')
  const events = await spine.events(incident.id)
  expect(
    steps(events)
      .map((step) => step.split(' ')[1])
      .sort(),
  ).toEqual(['FAILED', 'OK', 'OK'])
  expect(events.flatMap((event) => (event.kind === 'verification' ? [event.metadata.outcome] : []))).toContain(
    'not_held',
  )
  expect(await complaints('step_fails', 'host-ams-1')).toEqual([])
})

test('all stored rows agree with the log', async () => {
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
  expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
})
