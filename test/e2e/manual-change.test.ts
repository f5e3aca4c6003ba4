import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import { runCli } from '../support/run-cli.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
let operator = ''
let secondAdmin = ''

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'api', 'worker'], environment: { AGENT_ENABLED: 'false' } })
  operator = await personOf('oppie', 'operator')
  secondAdmin = await personOf('ada', 'admin')
})
afterAll(async () => {
  await spine?.stop()
})

async function personOf(name: string, role: 'operator' | 'admin'): Promise<string> {
  return await createToken(spine.db, { name, role, operatorId: await ensureOperator(spine.db, name, role) })
}

type Vm = { id: string; running: boolean }
let used = 0

async function runningVm(): Promise<string> {
  const { items } = await spine.get<{ items: Vm[] }>('/vms?limit=100')
  const vm = items.filter(({ running }) => running)[used]
  used += 1
  return String(vm?.id)
}

async function set(key: string, value: unknown): Promise<void> {
  const answer = await fetch(`${spine.url}/api/v1/config/${key}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${spine.tokens.admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ value, reason: 'for a test' }),
  })
  expect([key, answer.status]).toEqual([key, 200])
}

const isRunning = async (id: string) => (await spine.get<Vm>(`/vms/${id}`)).running

/** Asks for a stop of a VM as this person, on the state that they saw. */
async function stopVm(id: string, token: string, more: object = {}) {
  const dry = await spine.get<{ stateFingerprint: string }>(`/vms/${id}/stop?dry_run=true`, token)
  const headers = { 'if-match': dry.stateFingerprint }
  return await spine.post(`/vms/${id}/stop`, { reason: 'maintenance', ...more }, { token, headers })
}

async function decide(approvalId: unknown, decision: 'approve' | 'deny', token: string) {
  const said = { decision, reason: decision === 'deny' ? 'not now' : null }
  const { body } = await spine.post(`/approvals/${approvalId}/token`, said, { token })
  return await spine.post(`/approvals/${approvalId}/decision`, { ...said, token: body.token }, { token })
}

const ended = (id: unknown) =>
  spine.until(`the end of ${id}`, async () => {
    const incident = (await spine.incidents()).find((each) => each.id === id)
    return incident && ['resolved', 'escalated', 'cancelled'].includes(incident.status) ? incident : null
  })

test('an operator without the right to decide stops no VM: an approver is asked, and the log names both', async () => {
  const vm = await runningVm()
  const asked = await stopVm(vm, operator)
  expect(asked.body).toMatchObject({ status: 'awaiting_approval', incidentId: expect.stringMatching(/^inc_/) })
  expect(await isRunning(vm)).toBe(true)
  expect(await spine.get(`/approvals/${asked.body.approvalId}`)).toMatchObject({ askedBy: 'oppie' })
  expect(await spine.get(`/incidents/${asked.body.incidentId}/brief`)).toMatchObject({
    cause: { state: 'requested' },
    asked: { askedBy: 'oppie' },
  })
  expect((await decide(asked.body.approvalId, 'approve', spine.tokens.approver)).status).toBe(200)
  expect(await ended(asked.body.incidentId)).toMatchObject({
    type: 'manual_change',
    status: 'resolved',
    outcome: 'changed',
  })
  expect(await isRunning(vm)).toBe(false)
  const rows = await spine.events(String(asked.body.incidentId))
  expect(rows.filter(({ kind }) => /change_requested|decided|tool_started|verification/.test(kind))).toMatchObject([
    { kind: 'change_requested', actor: 'user:oppie' },
    { kind: 'approval_decided', actor: 'user:approver' },
    { kind: 'tool_started', actor: 'user:oppie' },
    { kind: 'verification', actor: 'user:oppie', metadata: { outcome: 'held' } },
  ])
  const { items } = await spine.get<{ items: object[] }>('/audit?what=change')
  expect(items[0]).toMatchObject({ who: 'oppie', what: 'change.requested', subject: asked.body.incidentId })
})

test('a person with the right to decide acts at once, while the agent is paused and off', async () => {
  await set('agent.paused', 'true')
  const vm = await runningVm()
  const done = await stopVm(vm, spine.tokens.approver)
  expect(done.body).toMatchObject({ status: 'done' })
  expect(await isRunning(vm)).toBe(false)
})

test('a credential without the right to decide gives no vote of its person by asking, and no break-glass access', async () => {
  const operatorId = await ensureOperator(spine.db, 'eve', 'admin')
  for (const narrowed of [
    { role: 'operator' as const },
    { role: 'admin' as const, scopes: ['act_on_platform', 'read'] },
  ]) {
    const vm = await runningVm()
    const token = await createToken(spine.db, { name: 'automation', operatorId, ...narrowed })
    const asked = await stopVm(vm, token)
    expect(asked.body).toMatchObject({ status: 'awaiting_approval' })
    await decide(asked.body.approvalId, 'deny', spine.tokens.approver)
    await set('approval.risk.vm_stop', 'critical')
    expect((await stopVm(vm, token, { alone: true })).status).toBe(403)
    await set('approval.risk.vm_stop', 'high')
    expect(await isRunning(vm)).toBe(true)
  }
})

test("a person's request withdraws nobody's question, and a person's action does", async () => {
  const vm = await runningVm()
  const first = await stopVm(vm, operator)
  const second = await stopVm(vm, operator)
  for (const { body } of [first, second]) expect(body).toMatchObject({ status: 'awaiting_approval' })
  expect(await spine.get(`/approvals/${first.body.approvalId}`)).toMatchObject({ status: 'pending' })
  expect((await stopVm(vm, spine.tokens.approver)).body).toMatchObject({ status: 'done' })
  for (const { body } of [first, second])
    expect(await spine.get(`/approvals/${body.approvalId}`)).toMatchObject({ status: 'withdrawn' })
  expect(await isRunning(vm)).toBe(false)
})

test('a denied action is not done, and the incident says so', async () => {
  const vm = await runningVm()
  const asked = await stopVm(vm, operator)
  await decide(asked.body.approvalId, 'deny', spine.tokens.approver)
  expect(await ended(asked.body.incidentId)).toMatchObject({ status: 'cancelled' })
  expect(await isRunning(vm)).toBe(true)
})

test("a critical write needs a second person, and an admin's lone write pages people and is reviewed by another person", async () => {
  await set('approval.risk.vm_stop', 'critical')
  const vm = await runningVm()
  const asked = await stopVm(vm, spine.tokens.admin)
  expect(asked.body).toMatchObject({ status: 'awaiting_approval' })
  expect(await isRunning(vm)).toBe(true)
  await decide(asked.body.approvalId, 'deny', spine.tokens.approver)
  expect((await stopVm(vm, operator, { alone: true })).status).toBe(403)
  const alone = await stopVm(vm, spine.tokens.admin, { alone: true, reason: 'it fills the pool, nobody answers' })
  expect(alone.body).toMatchObject({ status: 'done' })
  expect(await isRunning(vm)).toBe(false)
  const id = String(alone.body.incidentId)
  const refused = async (token: string) => {
    const { actions } = await spine.get<{ actions: { action: string; refused: string | null }[] }>(
      `/incidents/${id}/surroundings`,
      token,
    )
    return actions.find(({ action }) => action === 'review')?.refused
  }
  expect([await refused(spine.tokens.admin), await refused(secondAdmin)]).toEqual([
    'You did this write, so somebody else has to review it.',
    null,
  ])
  const review = (token: string) =>
    spine.post(`/incidents/${id}/review`, { verdict: 'right', text: 'the pool was full' }, { token })
  expect((await review(spine.tokens.admin)).status).toBe(403)
  const lowly = await ensureOperator(spine.db, 'lowly', 'approver')
  await spine.db.updateTable('operator').set({ maxRisk: 'none' }).where('id', '=', lowly).execute()
  const token = await createToken(spine.db, { name: 'lowly', role: 'approver', operatorId: lowly })
  expect((await review(token)).status).toBe(403)
  expect((await review(secondAdmin)).status).toBe(200)
  expect((await review(secondAdmin)).status).toBe(409)
  expect((await spine.events(id)).filter(({ kind }) => kind === 'change_reviewed')).toMatchObject([
    { actor: 'user:ada' },
  ])
})

const atTerminal = (token: string, ...args: string[]) =>
  runCli(args, { NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN: token })

test('the terminal names the awaited person, and a second person approves there', async () => {
  await set('approval.risk.vm_stop', 'high')
  const vm = await runningVm()
  const stop = ['act', 'stop-vm', vm, '--reason', 'maintenance']
  const waits = await atTerminal(operator, ...stop)
  expect([waits.code, await isRunning(vm)]).toEqual([0, true])
  const [, id = '', approvalId = ''] =
    /Nothing was done yet\. (inc_\w+) waits for .*approvals approve (apr_\w+)/.exec(waits.stderr) ?? []
  const shown = await Promise.all([
    atTerminal(spine.tokens.approver, 'approvals', 'show', approvalId),
    atTerminal(operator, 'incidents', 'show', id),
  ])
  expect(shown[0]?.stdout).toContain('oppie requests it: maintenance')
  // No agent has a part in it, and no sentence says that one has.
  for (const { stdout } of shown) expect(stdout).not.toMatch(/the agent(?!\s+is\s+paused)|investigation/i)
  const json = JSON.parse((await atTerminal(operator, ...stop, '--json')).stdout)
  // A machine with much to do asks a moment later than the terminal waits.
  expect(['awaiting_approval', 'under_way']).toContain(json.status)
  expect(json.incidentId).not.toBe(id)
  expect((await atTerminal(operator, 'approvals', 'approve', approvalId)).code).toBe(4)
  expect((await atTerminal(spine.tokens.approver, 'approvals', 'approve', approvalId)).code).toBe(0)
  expect(await ended(id)).toMatchObject({ status: 'resolved', outcome: 'changed' })
  expect(await isRunning(vm)).toBe(false)
})

test("an admin's lone write at the terminal is shown at the incident, and another person reviews it there", async () => {
  const vm = await runningVm()
  const stop = ['act', 'stop-vm', vm, '--reason', 'it fills the pool', '--alone']
  const early = await atTerminal(spine.tokens.admin, ...stop)
  expect([early.code, early.stderr]).toEqual([
    1,
    expect.stringContaining('Only a critical write can be done without a second person'),
  ])
  await set('approval.risk.vm_stop', 'critical')
  expect((await atTerminal(operator, ...stop)).code).toBe(4)
  const alone = await atTerminal(spine.tokens.admin, ...stop)
  const [, id = ''] = /incidents review (inc_\w+)/.exec(alone.stderr) ?? []
  expect([alone.code, await isRunning(vm)]).toEqual([0, false])
  const waits = 'done without a second person, waits for a review'
  expect((await atTerminal(secondAdmin, 'incidents', 'list')).stdout).toContain(waits)
  const show = async () => (await atTerminal(secondAdmin, 'incidents', 'show', id)).stdout.replace(/\s+/g, ' ')
  expect(await show()).toContain(waits)
  const review = ['incidents', 'review', id, '--verdict', 'right', '--comment', 'the pool was full']
  const own = await atTerminal(spine.tokens.admin, ...review)
  expect([own.code, own.stderr]).toEqual([4, expect.stringContaining('somebody else must')])
  expect(await atTerminal(secondAdmin, ...review)).toMatchObject({ code: 0, stdout: '' })
  expect((await atTerminal(secondAdmin, ...review)).code).toBe(5)
  const reviewed = await show()
  expect(reviewed).not.toContain(waits)
  expect(reviewed).toContain('ada reviewed it: right. the pool was full')
})

test('the rows say what people did here', async () => {
  const all = (await spine.incidents()).filter(({ type }) => type === 'manual_change')
  expect(all.length).toBeGreaterThan(5)
  for (const { id } of all) expect([id, (await verifyIncident(spine.db, id)).differences]).toEqual([id, []])
})
