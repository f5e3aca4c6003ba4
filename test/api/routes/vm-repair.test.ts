import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { rule } from '../../../activities/rule.ts'
import { send } from '../../../activities/send.ts'
import { toolContext, verifyWrite } from '../../../activities/verify-write.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { acceptEffect, noteVmOfEffect } from '../../../db/writes/effects.ts'
import { importSource } from '../../../domain/declared-resources.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import { tools } from '../../../tools/registry.ts'
import { announced, approvedBySomebody, approvedWrite } from '../../support/announced.ts'
import { corePort, useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const { inventoryState } = scriptedPlatform()

beforeEach(async () => {
  Object.assign(platform, { inventoryState: structuredClone(inventoryState), script: {}, down: false, begun: [] })
  await sql`delete from target_lease`.execute(api.owner)
  api.api.deps.state.forget()
})

const vm = (id = 'vm-1') => platform.inventoryState.vms.find((each) => each.id === id)!
const reason = { reason: 'it does not answer' }
type Prepared = { stateFingerprint: string; dryRun: { summary: string; details: { rehearsal: { told: string[] } } } }

const asked = (id: string, action: string) => api.get(`/vms/${id}/${action}?dry_run=true`)
async function prepared(id: string, action: string): Promise<Prepared> {
  const answer = await asked(id, action)
  expect([answer.status, answer.body.detail]).toEqual([200, undefined])
  return answer.body as unknown as Prepared
}
const sends = new Map<string, ReturnType<typeof approvedWrite>>()
/** As a run sends it after a person approved it; the same name is the same call again. */
async function repair(id: string, action: string, ifMatch: string | null, name: string) {
  const sent = sends.get(name) ?? approvedWrite(api, `vm_${action}`, { id })
  sends.set(name, sent)
  const headers: Record<string, string> = ifMatch === null ? {} : { 'if-match': ifMatch }
  return await api.post(`/vms/${id}/${action}`, { ...(await sent), body: reason, headers })
}

test('the dry run shows the state of the VM, its dependents and its undo, and changes nothing', async () => {
  await api.db.transaction().execute((trx) =>
    declareResources(trx, importSource, {
      resources: [{ kind: 'service_unit', id: 'vm-1/nginx.service' }],
      relations: [
        { from: { kind: 'service_unit', id: 'vm-1/nginx.service' }, kind: 'runs_on', to: { kind: 'vm', id: 'vm-1' } },
      ],
    }),
  )
  vm().haGroup = 'ha-web'
  const { dryRun } = await prepared('vm-1', 'stop')
  expect(dryRun.summary).toBe('Stop vm-1 on host-osl-1')
  const told = dryRun.details.rehearsal.told.join('\n')
  for (const words of [
    'runs on host-osl-1 (live)',
    'ha_group ha-web',
    'service_unit:vm-1/nginx.service',
    'undo: vm_start',
  ])
    expect(told).toContain(words)
  expect(platform.begun).toEqual([])
})

test('a VM is stopped, started and restarted, once per key', async () => {
  const stop = await prepared('vm-1', 'stop')
  const [first, second] = [
    await repair('vm-1', 'stop', stop.stateFingerprint, 's1'),
    await repair('vm-1', 'stop', stop.stateFingerprint, 's1'),
  ]
  expect([first.status, second.status, vm().running]).toEqual([200, 200, false])
  const start = await prepared('vm-1', 'start')
  expect((await repair('vm-1', 'start', start.stateFingerprint, 's2')).status).toBe(200)
  const restart = await prepared('vm-1', 'restart')
  expect((await repair('vm-1', 'restart', restart.stateFingerprint, 's3')).status).toBe(200)
  expect(platform.begun).toHaveLength(3)
  expect([vm().host, vm().running]).toEqual(['host-osl-1', true])
})

test.each([
  ['is on another host', () => Object.assign(vm(), { host: 'host-osl-3' })],
  ['was stopped meanwhile', () => Object.assign(vm(), { running: false })],
  ['is on a host that died', () => Object.assign(platform.inventoryState.hosts[0]!, { state: 'dead' })],
])('a VM that %s since the decision gets 412, and nothing begins', async (what, change) => {
  const { stateFingerprint } = await prepared('vm-1', 'restart')
  change()
  const answer = await repair('vm-1', 'restart', stateFingerprint, `changed ${what}`.replaceAll(' ', '-'))
  expect([answer.status, answer.body.code]).toEqual([412, 'STATE_CHANGED'])
  expect(platform.begun).toEqual([])
})

test('a repair without the state of its decision is refused', async () => {
  expect((await repair('vm-1', 'restart', null, 'unnamed')).status).toBe(428)
})

test('a repair that needs a plan, that already moves, or that is already done is refused, with the alternative', async () => {
  const refusal = async (id: string, action: string) => {
    const { status, body } = await asked(id, action)
    return [status, body.code, body.detail]
  }
  expect(await refusal('vm-2', 'start')).toEqual([409, 'HOST_DOWN', expect.stringContaining('schedule_ha_proposal')])
  expect(await refusal('vm-1', 'start')).toEqual([409, 'NOTHING_TO_CHANGE', expect.stringContaining('vm_restart')])
  expect(await refusal('vm-9', 'stop')).toEqual([404, 'NOT_FOUND', expect.any(String)])
  vm().busy = 'migrating to host-osl-3'
  expect(await refusal('vm-1', 'restart')).toEqual([409, 'VM_BUSY', expect.stringContaining('migrating to host-osl-3')])
  Object.assign(vm(), { busy: null, running: false })
  expect(await refusal('vm-1', 'restart')).toEqual([409, 'NOT_RUNNING', expect.stringContaining('vm_start')])
  expect(await refusal('vm-1', 'stop')).toEqual([409, 'NOTHING_TO_CHANGE', expect.any(String)])
  Object.assign(vm(), { host: 'host-osl-4' })
  expect(await refusal('vm-1', 'start')).toEqual([
    409,
    'HOST_DRAINING',
    expect.stringContaining('schedule_ha_proposal'),
  ])
})

test('a host that another incident writes to, and a plan that moves the VM, have priority', async () => {
  const { stateFingerprint } = await prepared('vm-1', 'restart')
  const incidentId = await claimedIncident(api.db)
  await sql`insert into target_lease (target, incident_id, attempt, call_id)
    values ('host:host-osl-1', ${incidentId}, 1, 'c1_0')`.execute(api.owner)
  const busy = await repair('vm-1', 'restart', stateFingerprint, 'leased')
  expect([busy.status, busy.body.code, busy.body.detail]).toEqual([
    409,
    'TARGET_BUSY',
    expect.stringContaining(incidentId),
  ])
  await sql`delete from target_lease`.execute(api.owner)

  const body = { intent: 'drain', host_ids: ['host-osl-1'], vm_ids: null, use_rack_constraints: false }
  const plan = (await api.post('/placement/proposals', { body })).body as { proposal_id?: string; steps?: unknown[] }
  expect(plan.steps).toHaveLength(1)
  await acceptEffect(api.db, { key: 'plan', incidentId: null, tool: 'execute_migration', actionDigest: 'd' })
  await sql`update effect set result = ${JSON.stringify({ proposalId: plan.proposal_id })}::jsonb where key = 'plan'`.execute(
    api.owner,
  )
  const moving = await asked('vm-1', 'restart')
  expect([moving.status, moving.body.detail]).toEqual([409, expect.stringContaining(String(plan.proposal_id))])
  await sql`delete from effect where key = 'plan'`.execute(api.owner)
  expect(platform.begun).toEqual([])
})

test('a refusal of the platform is a failure with its text', async () => {
  platform.script['vm-1'] = 'failed'
  const { stateFingerprint } = await prepared('vm-1', 'restart')
  const answer = await repair('vm-1', 'restart', stateFingerprint, 'no')
  expect([answer.status, answer.body.detail]).toEqual([502, 'vm-1 did not start'])
})

/**
 * An effect whose process died after it was accepted, so long ago that it should have said how it
 * ended.
 */
async function left(key: string) {
  const digest = actionDigest('vm_restart', { id: 'vm-1' })
  await acceptEffect(api.db, { key, incidentId: null, tool: 'vm_restart', actionDigest: digest })
  await noteVmOfEffect(api.db, key, { host: 'host-osl-1', running: true, startedAt: '2026-11-01T00:00:00.000Z' })
  await sql`update effect set started_at = nightshift_now() - interval '10 seconds' where key = ${key}`.execute(
    api.owner,
  )
}

test('after a process died between accept and effect, the outcome is unknown until the platform reports the effect', async () => {
  await left('died')
  expect((await api.get('/effects/died')).body).toMatchObject({ status: 'running' })
  await platform.powerVm('vm-1', 'restart', 'host-osl-1', 'died')
  const found = (await api.get('/effects/died')).body
  expect(found).toMatchObject({ status: 'done', result: { before: { host: 'host-osl-1' } } })
  await left('lost')
  await sql`update effect set started_at = nightshift_now() - interval '70 seconds' where key = 'lost'`.execute(
    api.owner,
  )
  expect((await api.get('/effects/lost')).body).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('never reached'),
  })
})

test('a run that announced the repair without an approval is refused', async () => {
  const incidentId = await claimedIncident(api.db)
  const key = await announced(api.db, incidentId, 'vm_restart', { id: 'vm-1' })
  const { stateFingerprint } = await prepared('vm-1', 'restart')
  const headers = { 'if-match': stateFingerprint }
  const answer = await api.post('/vms/vm-1/restart', { body: reason, key, headers, as: api.tokens.agent })
  expect([answer.status, answer.body.code]).toEqual([403, 'UNJUDGED'])
})

// What follows is a run of the agent without its model: the activities, the kernel and real rows.

const core = corePort(api)
const signal = new AbortController().signal
const args = { id: 'vm-1', reason: 'it does not answer' }

async function aboutVm() {
  const incidentId = await claimedIncident(api.db)
  await api.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      turn: 1,
      detail: '',
      stepKey: `${incidentId}.1:1:tool_finished:0`,
      metadata: {
        callId: 'c1_0',
        tool: 'current_vm_host',
        arguments: { vm: 'vm-1' },
        effect: 'read',
        targets: [{ kind: 'vm', id: 'vm-1' }],
        outcome: 'done',
        result: { ok: true, meta: {} },
        body: null,
        durationMs: 1,
        discovered: [{ kind: 'vm', id: 'vm-1', name: 'vm-1', aliases: [], seen: true }],
      },
    }),
  )
  await api.owner
    .updateTable('incident')
    .set({ resourceKind: 'vm', resourceId: 'vm-1' })
    .where('id', '=', incidentId)
    .execute()
  return incidentId
}

async function judged(incidentId: string, tool: string, approvalId: string | null) {
  const place = { incidentId, attempt: 1, turn: 2, call: 0, approvalId }
  const preparation = await tools.get(tool)!.prepare!(args, toolContext({ core }, place, signal))
  const call = { id: 'c2_0', tool, arguments: args, problem: null, edit: null }
  const ruled = await api.db
    .transaction()
    .execute((trx) => rule({ environment: {} }, trx, place, { call, prepared: { ok: true, preparation }, later: null }))
  const rulings = (await eventsOf(api.db, incidentId)).filter((event) => event.kind === 'call_judged')
  return { place, ruled, ruling: rulings.at(-1)?.metadata as { code: string; risk: string; verdict: string } }
}

test.each([
  ['vm_restart', 'medium', 'since 2026'],
  ['vm_stop', 'high', 'is stopped'],
])('a run asks for %s on its own VM, takes VM and host, and the repair is proven', async (tool, risk, observed) => {
  vm().startedAt = '2026-11-01T00:00:00.000Z'
  const incidentId = await aboutVm()
  const first = await judged(incidentId, tool, null)
  expect(first.ruling).toMatchObject({ verdict: 'ask', risk })
  if (first.ruled.kind !== 'ask') throw new Error(first.ruled.kind)
  await approvedBySomebody(api.db, first.ruled.approvalId)
  const second = await judged(incidentId, tool, first.ruled.approvalId)
  if (second.ruled.kind !== 'run') throw new Error(second.ruling.code)
  const leases = await api.db.selectFrom('targetLease').select('target').where('incidentId', '=', incidentId).execute()
  expect(leases.map(({ target }) => target).sort()).toEqual(['host:host-osl-1', 'vm:vm-1'])
  const finished = await send({ db: api.db, core }, second.place, second.ruled.started, { again: false, signal })
  expect(finished.metadata).toMatchObject({ outcome: 'done', result: { ok: true } })
  await verifyWrite({ db: api.db, core }, second.place, signal)
  const verification = (await eventsOf(api.db, incidentId)).find((event) => event.kind === 'verification')
  expect(verification?.metadata).toMatchObject({ outcome: 'held', observed: expect.stringContaining(observed) })
})

test('a restart after which the same boot goes on is not proven', async () => {
  await left('same')
  vm().startedAt = '2026-11-01T00:00:00.000Z'
  const check = tools.get('vm_restart')!.postcondition!.check
  const context = { core, incidentId: 'inc', stepKey: 'same', ifMatch: null }
  expect(await check(args, null, context)).toMatchObject({
    holds: false,
    observed: expect.stringContaining('same run'),
  })
  // No start is known: while the write runs it is looked at again, and its end alone proves
  // nothing.
  vm().startedAt = null
  api.api.deps.state.forget()
  expect(await check(args, null, context)).toBeNull()
  const finish = (result: object) =>
    sql`update effect set status = 'done', result = ${JSON.stringify(result)}::jsonb where key = 'same'`.execute(
      api.owner,
    )
  await finish({})
  expect(await check(args, null, context)).toMatchObject({ holds: null })
  await sql`alter table effect disable trigger effect_ended`.execute(api.owner)
  await finish({ newStart: true })
  expect(await check(args, null, context)).toMatchObject({ holds: true })
})
