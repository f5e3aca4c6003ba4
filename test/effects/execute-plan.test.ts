import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { eventsOf } from '../../db/log/events.ts'
import { effectByKey, notePlanOfEffect } from '../../db/writes/effects.ts'
import type { PlanStep } from '../../domain/placement.ts'
import { announced, approvedWrite, asked, consumed } from '../support/announced.ts'
import { twoWaves, useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const { startVm, migrateVm } = platform

beforeEach(() => {
  Object.assign(platform, { inventoryState: twoWaves(), script: {}, down: false, begun: [] })
  api.api.deps.state.forget()
})
afterEach(() => {
  Object.assign(platform, { startVm, migrateVm })
})

type Proposed = {
  proposal_id: string
  planDigest: string
  stateFingerprint: string
  steps: PlanStep[]
  state: string
}

async function planned(incidentId: string | null = null): Promise<Proposed> {
  const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false, incident_id: incidentId }
  const answer = await api.post('/placement/proposals', { body })
  expect(answer.body).toMatchObject({ state: 'planned', migrations: 2, lowerBound: 2 })
  return answer.body as unknown as Proposed
}

async function execute(plan: Proposed, incident: string | null = null) {
  const sent = await approvedWrite(api, 'execute_migration', { plan: plan.planDigest }, incident)
  const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
    ...sent,
    body: { reason: 'host c is dead' },
    headers: { 'if-match': plan.stateFingerprint },
  })
  return answer.body as unknown as {
    detail: string
    steps: { step: number; vm: string; status: string; detail: string }[]
    next_proposal_id?: string
    changed?: string[] | null
    result?: { steps: { vm: string; status: string }[] }
  }
}

const statusOf = (steps: { vm: string; status: string }[]) =>
  Object.fromEntries(steps.map(({ vm, status }) => [vm, status]))
const hostOf = (vm: string) => platform.inventoryState.vms.find(({ id }) => id === vm)?.host

test('steps whose needs are met run at once, the others when these are done, and each is a row', async () => {
  const incident = await claimedIncident(api.db)
  const running = { now: 0, most: 0 }
  const two = Promise.withResolvers<void>()
  platform.migrateVm = async (...args) => {
    running.now += 1
    running.most = Math.max(running.most, running.now)
    if (running.now === 2) two.resolve()
    await two.promise
    running.now -= 1
    return await migrateVm(...args)
  }
  const done = await execute(await planned(incident), incident)
  expect(statusOf(done.steps)).toEqual({ 'small-1': 'OK', 'small-2': 'OK', big: 'OK', lone: 'OK' })
  expect(running.most).toBe(2)
  expect([hostOf('big'), hostOf('small-1'), hostOf('small-2')]).toEqual(['a', 'b', 'b'])
  const rows = (await eventsOf(api.db, incident)).filter(({ kind }) => kind.startsWith('step_'))
  const big = rows.findIndex(({ kind, detail }) => kind === 'step_started' && detail?.includes('big'))
  expect(rows).toHaveLength(8)
  expect(rows.slice(0, big).filter(({ detail }) => detail?.includes('small')).length).toBe(4)
})

test('a failed step stops the steps that need it, and nothing else', async () => {
  platform.script['small-1'] = 'failed'
  const done = await execute(await planned())
  expect(statusOf(done.steps)).toEqual({ 'small-1': 'FAILED', 'small-2': 'OK', big: 'SKIPPED', lone: 'OK' })
  expect(done.detail).toContain('2 of 4 steps were done, 1 failed, 1 was not begun')
  expect(done.changed).toEqual([
    expect.stringMatching(/^small-2 moved to /),
    expect.stringMatching(/^lone started on /),
  ])
  expect(hostOf('big')).toBe('c')
})

test('a VM is not planned again onto the host where its step failed in this incident, and the plan says so', async () => {
  const incident = await claimedIncident(api.db)
  const propose = async (incidentId: string | null) => {
    const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false, incident_id: incidentId }
    return (await api.post('/placement/proposals', { body })).body as unknown as Proposed & { avoided?: object[] }
  }
  platform.script.lone = 'failed'
  const first = await propose(incident)
  expect(first.avoided).toBeUndefined()
  const tried = first.steps.find(({ vm }) => vm === 'lone')?.to
  await execute(first, incident)

  platform.script = {}
  const avoided = [{ vm: 'lone', host: tried, why: 'lone did not start' }]
  const second = await propose(incident)
  expect(second.avoided).toEqual(avoided)
  const steps = second.steps.filter(({ vm }) => vm === 'lone')
  expect(steps.map(({ to }) => to)).not.toContain(tried)
  expect((await api.get(`/placement/proposals/${second.proposal_id}`)).body).toMatchObject({
    avoided,
    unfitBecause: null,
  })
  // What failed in one incident says nothing in another.
  expect((await propose(null)).avoided).toBeUndefined()
})

test('a VM that is not where the platform reported is a failed step', async () => {
  platform.startVm = async (vm, host, key) => {
    const answer = await startVm(vm, host, key)
    if (vm === 'lone') Object.assign(platform.inventoryState.vms.find(({ id }) => id === vm)!, { running: false })
    return answer
  }
  const done = await execute(await planned())
  expect(done.steps.find(({ vm }) => vm === 'lone')).toMatchObject({
    status: 'FAILED',
    detail: expect.stringContaining('lone is stopped on'),
  })
})

test('a host that dies during the plan stops the rest, keeps what is done, and a new plan waits for a decision', async () => {
  const incident = await claimedIncident(api.db)
  platform.migrateVm = async (...args) => {
    const answer = await migrateVm(...args)
    // Now there is no room for the big one anywhere, and one more VM is down.
    Object.assign(platform.inventoryState.hosts.find(({ id }) => id === 'a')!, { ramMib: 4_000 })
    return answer
  }
  const done = await execute(await planned(incident), incident)
  expect(statusOf(done.steps)).toMatchObject({ 'small-1': 'OK', 'small-2': 'OK', big: 'SKIPPED' })
  expect(done.steps.find(({ vm }) => vm === 'big')?.detail).toContain('a has another size')
  const rows = (await eventsOf(api.db, incident)).filter(({ kind }) => kind === 'step_finished')
  expect(rows.filter(({ detail }) => detail?.includes('SKIPPED')).length).toBeGreaterThan(0)
})

test('a change that needs other moves is planned again and not carried out without approval', async () => {
  platform.migrateVm = async (vm, move, key) => {
    const answer = await migrateVm(vm, move, key)
    // Somebody starts a VM of their own on a: now small-1 or it would have to leave for the big
    // one.
    if (!platform.inventoryState.vms.some(({ id }) => id === 'foreign')) {
      const like = platform.inventoryState.vms.find(({ id }) => id === 'lone')!
      platform.inventoryState.vms.push({ ...like, id: 'foreign', host: 'a', running: true, ramMib: 500 })
    }
    return answer
  }
  const done = await execute(await planned())
  expect(statusOf(done.steps)).toMatchObject({ big: 'SKIPPED' })
  expect(done.next_proposal_id).toMatch(/^prp_/)
  expect(hostOf('foreign')).toBe('a')
  const next = (await api.get(`/placement/proposals/${done.next_proposal_id}`)).body as unknown as Proposed
  expect(next.steps.map(({ vm }) => vm)).toContain('foreign')
  expect(platform.begun.some((key) => key.includes('foreign'))).toBe(false)
})

test('a change after which a part of the plan is enough does not ask again', async () => {
  platform.migrateVm = async (...args) => {
    const answer = await migrateVm(...args)
    // Somebody starts the small one by hand, where the plan would have put it or elsewhere.
    Object.assign(platform.inventoryState.vms.find(({ id }) => id === 'lone')!, { host: 'd', running: true })
    return answer
  }
  // The one that needs nothing would run in the first wave: hold it back.
  platform.startVm = async (vm, host, key) => {
    if (vm === 'lone') throw new Error('this start was not to be sent')
    return await startVm(vm, host, key)
  }
  const plan = await planned()
  await api.owner
    .updateTable('proposal')
    .set({
      steps: JSON.stringify(plan.steps.map((step) => (step.vm === 'lone' ? { ...step, needs: [1, 2] } : step))),
    })
    .where('id', '=', plan.proposal_id)
    .execute()
  const done = await execute(plan)
  expect(statusOf(done.steps)).toEqual({ 'small-1': 'OK', 'small-2': 'OK', big: 'OK', lone: 'SKIPPED' })
  expect(done.steps.find(({ vm }) => vm === 'lone')?.detail).toContain('not needed any more')
})

async function approvedCall(): Promise<{ incident: string; key: string; plan: Proposed }> {
  const incident = await claimedIncident(api.db)
  const plan = await planned(incident)
  const identity = { plan: plan.planDigest }
  const approval = await asked(api.db, incident, { identity })
  const token = await api.post(`/approvals/${approval}/token`, {
    as: api.tokens.approver,
    body: { decision: 'approve' },
  })
  const decision = { decision: 'approve', token: (token.body as unknown as { token: string }).token }
  await api.post(`/approvals/${approval}/decision`, { body: decision, as: api.tokens.approver })
  await consumed(api.db, incident, approval)
  return { incident, plan, key: await announced(api.db, incident, 'execute_migration', identity, approval) }
}

test('an investigation that is stopped begins no further step', async () => {
  const { incident, key, plan } = await approvedCall()
  platform.migrateVm = async (...args) => {
    const answer = await migrateVm(...args)
    await api.post(`/incidents/${incident}/cancel`, { body: { reason: 'this is the wrong night for it' } })
    return answer
  }
  const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
    body: { reason: 'host c is dead' },
    key,
    headers: { 'if-match': plan.stateFingerprint },
    as: api.tokens.agent,
  })
  expect(answer.body).toMatchObject({ skipped: expect.any(Number) })
  const { steps } = answer.body as unknown as Awaited<ReturnType<typeof execute>>
  expect(steps.find(({ vm }) => vm === 'big')).toMatchObject({
    status: 'SKIPPED',
    detail: 'the investigation was stopped',
  })
})

test('a plan whose process died is continued on request, each step once', async () => {
  const { key, plan } = await approvedCall()
  // As it was left: accepted, one step done and told, one done without a word, the others not
  // begun.
  await sql`insert into effect (key, incident_id, tool, action_digest, status, result, started_at)
    values (${key}, null, 'execute_migration', 'x', 'running', '{}', nightshift_now() - interval '20 seconds')`.execute(
    api.owner,
  )
  await notePlanOfEffect(api.db, key, plan.proposal_id)
  for (const { step, action, vm, from, to } of plan.steps) {
    if (action === 'migrate') await migrateVm(vm, { from: from as string, to }, `${key}:${step}`)
  }
  const begun = [...platform.begun]
  const ended = await eventually('the plan to be settled', async () => {
    await api.get(`/effects/${encodeURIComponent(key)}`)
    const effect = await effectByKey(api.db, key)
    return effect?.status === 'done' ? effect : null
  })
  expect(statusOf(ended.result.steps as never)).toEqual({ 'small-1': 'OK', 'small-2': 'OK', big: 'OK', lone: 'OK' })
  expect(platform.begun.slice(0, begun.length)).toEqual(begun)
  expect(new Set(platform.begun).size).toBe(platform.begun.length)
  expect(platform.begun).toHaveLength(4)
})

test('a plan that was left too long ago is not continued', async () => {
  const { key, plan } = await approvedCall()
  await sql`insert into effect (key, incident_id, tool, action_digest, status, result, started_at)
    values (${key}, null, 'execute_migration', 'x', 'running', '{}', nightshift_now() - interval '2 hours')`.execute(
    api.owner,
  )
  await notePlanOfEffect(api.db, key, plan.proposal_id)
  const ended = await eventually('the plan to be settled', async () => {
    await api.get(`/effects/${encodeURIComponent(key)}`)
    const effect = await effectByKey(api.db, key)
    return effect?.status === 'failed' ? effect : null
  })
  expect(ended.detail).toContain('too long ago')
  expect(platform.begun).toEqual([])
})

test('hosts of a request are planned for and never changed, and an error is named by its field', async () => {
  const written = {
    hosts: [
      { name: 'x', ram_mib: 8_192, cpu_mc: 8_000, state: 'dead' },
      { name: 'y', ram_mib: 8_192, cpu_mc: 8_000 },
    ],
    vms: [{ vmid: 101, ram_mib: 4_096, cpu_mc: 2_000, host: 'x' }],
  }
  const ask = (problem: unknown) =>
    api.post('/placement/proposals', {
      body: { intent: 'recover', host_ids: ['x'], use_rack_constraints: false, problem },
    })
  const plan = (await ask(written)).body as unknown as Proposed
  expect(plan.steps).toMatchObject([{ action: 'start', vm: '101', to: 'y' }])
  const refused = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
    body: { reason: 'just to see' },
    headers: { 'if-match': plan.stateFingerprint },
  })
  expect([refused.status, refused.body.code]).toEqual([409, 'NOT_OF_THE_INVENTORY'])

  const wrong = async (problem: unknown) => {
    const answer = await ask(problem)
    return [answer.status, (answer.body.errors as { path: string }[] | undefined)?.map(({ path }) => path)]
  }
  const [vm] = written.vms
  expect(await wrong({ ...written, vms: [{ ...vm, ram_mib: -1 }] })).toEqual([400, ['vms.0.ram_mib']])
  expect(await wrong({ ...written, vms: [{ ...vm, cpu_mc: 'NaN' }] })).toEqual([400, ['vms.0.cpu_mc']])
  expect(await wrong({ ...written, vms: [vm, vm] })).toEqual([400, ['vms.1.vmid']])
  expect(await wrong({ ...written, vms: [{ ...vm, host: 'z' }] })).toEqual([400, ['vms.0.host']])
  expect(await wrong({ ...written, vms: [{ ...vm, pinned_to: ['z'] }] })).toEqual([400, ['vms.0.pinned_to.0']])
  const group = [1, 2, 3].map((vmid) => ({ ...vm, vmid, ha_group: 'db' }))
  expect(await wrong({ ...written, vms: group })).toEqual([400, ['vms.2.ha_group']])
  expect(await wrong({ ...written, hosts: [] })).toMatchObject([400, ['hosts']])
})

test('a body with a duplicate key, or with bytes that are no text, is planned for in none of its readings', async () => {
  const hosts = '"hosts": [{"name": "x", "ram_mib": 9, "cpu_mc": 9, "state": "dead"}]'
  const asked = (problem: string) =>
    `{"intent": "recover", "host_ids": ["x"], "use_rack_constraints": false, "problem": ${problem}}`
  const twice = await api.post('/placement/proposals', { raw: asked(`{${hosts}, "vms": [], "vms": []}`) })
  expect([twice.status, twice.body.code]).toEqual([400, 'INVALID_PROBLEM'])
  expect(twice.body.errors).toEqual([expect.objectContaining({ path: 'problem.vms' })])
  const answer = await api.api.app.request('/api/v1/placement/proposals', {
    method: 'POST',
    headers: { authorization: `Bearer ${api.tokens.admin}`, 'content-type': 'application/json' },
    body: Buffer.from(asked(`{${hosts.replace('"x"', '"\xfc"')}, "vms": []}`), 'latin1'),
  })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    code: 'BAD_REQUEST',
    detail: expect.stringMatching(/byte \d+ is not UTF-8/),
  })
})

test('a plan of an older release is read, and its steps wait for each other as approved', async () => {
  const plan = await planned()
  const bare = plan.steps.map(({ step, action, vm, from, to }) => ({ step, action, vm, from, to }))
  await api.owner
    .updateTable('proposal')
    .set({ steps: JSON.stringify(bare), unplaced: JSON.stringify([{ vm: 'lone', reason: 'no room' }]) })
    .where('id', '=', plan.proposal_id)
    .execute()
  const { status, body } = await api.get(`/placement/proposals/${plan.proposal_id}`)
  expect(status).toBe(200)
  const steps = body.steps as unknown as PlanStep[]
  expect(steps.map(({ needs }) => needs)).toEqual(
    steps.map((_, index) => steps.slice(0, index).map(({ step }) => step)),
  )
  expect(body.unplaced).toEqual([{ vm: 'lone', reason: 'no room' }])
})
