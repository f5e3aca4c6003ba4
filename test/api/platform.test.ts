import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { eventsOf } from '../../db/log/events.ts'
import { acceptEffect } from '../../db/writes/effects.ts'
import { announced, asked, consumed } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const reason = { reason: 'the replica is behind' }

async function proposed(as?: string) {
  const body = { intent: 'recover', host_ids: ['host-osl-2'], vm_ids: null, use_rack_constraints: true }
  const answer = await api.post('/placement/proposals', { body, as })
  expect(answer.status).toBe(201)
  return answer.body as unknown as {
    proposal_id: string
    planDigest: string
    stateFingerprint: string
    steps: unknown[]
  }
}

/** Effects begun so long ago that the process that began them should have told. */
async function aged(key: string, seconds: number) {
  await sql`update effect set started_at = nightshift_now() - make_interval(secs => ${seconds}) where key = ${key}`.execute(
    api.owner,
  )
}

test('a shard, its nodes and its tenant have the current state of the platform', async () => {
  expect((await api.get('/shards/db-osl-1')).body).toMatchObject({ role: 'database', config: { wal_keep: 4 } })
  const nodes = (await api.get('/shards/db-osl-1/nodes')).body as unknown as { items: unknown[]; nextCursor: null }
  expect(nodes.nextCursor).toBeNull()
  expect(nodes.items).toMatchObject([
    { id: 'node-osl-1', status: 'nominal' },
    { id: 'node-osl-2', status: 'degraded', replicationLagSeconds: 42, diskByDirectory: { data: 1 } },
  ])
  expect((await api.get('/tenants/tenant-1')).body).toMatchObject({ name: 'Fjord Bank', shard: 'db-osl-1' })
  expect((await api.get('/shards/none')).status).toBe(404)
})

test('a host shows its capacity, its free capacity, and its VMs with priority and state', async () => {
  const one = (await api.get('/hosts/host-osl-1')).body as unknown as { use: { freeRamMib: number }; ramMib: number }
  expect(one).toMatchObject({
    state: 'live',
    status: 'nominal',
    rack: 'r1',
    device: null,
    use: { vms: 1, running: 1, ramMib: 1024, cpuMc: 500, freeRamMib: one.ramMib - 1024 },
    vms: [{ id: 'vm-1', running: true, ramMib: 1024, cpuMc: 500, haGroup: null, priority: 0, tenant: 'tenant-1' }],
  })
  // What does not run takes nothing.
  expect((await api.get('/hosts/host-osl-2')).body).toMatchObject({
    state: 'dead',
    status: 'critical',
    use: { vms: 2, running: 0, ramMib: 0 },
  })
  expect((await api.get('/hosts/host-osl-4')).body).toMatchObject({ state: 'draining', use: { vms: 0 }, vms: [] })
  expect((await api.get('/hosts/none')).status).toBe(404)
})

test('hosts are listed by rack or region, and an unknown rack is refused with the list of racks', async () => {
  const list = async (query: string) =>
    ((await api.get(`/hosts?${query}`)).body as unknown as { items: { id: string }[] }).items
  expect((await list('rack=r2')).map(({ id }) => id)).toEqual(['host-osl-2'])
  expect(await list('region=osl&brief=true')).toHaveLength(4)
  expect((await list('brief=true'))[0]).not.toHaveProperty('device')
  const unknown = await api.get('/hosts?rack=rack-2')
  expect(unknown).toMatchObject({
    status: 404,
    body: { detail: expect.stringContaining('there are r1, r2, r3, r4') },
  })
})

test('nodes and hosts have a health', async () => {
  const health = async (id: string) => (await api.get(`/nodes/${id}/health`)).body
  expect(await health('node-osl-2')).toEqual({
    node: 'node-osl-2',
    kind: 'node',
    status: 'degraded',
    reason: 'replica is 42 s behind',
    device: null,
  })
  expect(await health('host-osl-1')).toMatchObject({ kind: 'host', status: 'nominal' })
  expect(await health('host-osl-4')).toMatchObject({ status: 'degraded', state: 'draining', vmCount: 0 })
  expect(await health('host-osl-2')).toMatchObject({ status: 'critical', state: 'dead', vmCount: 2 })
})

test('a link is alive only if both ends are alive, and a path only if its links are alive', async () => {
  const link = async (a: string, b: string) => (await api.get(`/links?a=${a}&b=${b}`)).body
  expect(await link('host-osl-3', 'host-osl-1')).toMatchObject({ status: 'live', live: true, cost: 10 })
  expect(await link('host-osl-1', 'host-osl-2')).toMatchObject({ status: 'down', live: false, cost: null })
  const reach = async (from: string, to: string) => (await api.get(`/reachability?from=${from}&to=${to}`)).body
  expect(await reach('host-osl-1', 'host-osl-3')).toMatchObject({ status: 'reachable', reachable: true, cost: 10 })
  expect(await reach('host-osl-1', 'host-osl-4')).toMatchObject({
    status: 'unreachable',
    reachable: false,
    cost: null,
    path: [],
  })
  expect((await api.get('/links?a=host-osl-1&b=nowhere')).status).toBe(404)
})

test('if the platform has no links, links and paths between live hosts are unknown, neither present nor missing', async () => {
  const { links } = platform.inventoryState
  platform.inventoryState.links = []
  api.api.deps.state.forget()
  const told = async (path: string) => (await api.get(path)).body
  expect(await told('/links?a=host-osl-1&b=host-osl-3')).toMatchObject({ status: 'unknown', live: null, cost: null })
  expect(await told('/reachability?from=host-osl-1&to=host-osl-3')).toMatchObject({
    status: 'unknown',
    reachable: null,
    cost: null,
    path: [],
  })
  // What follows from the hosts alone is known all the same.
  expect(await told('/reachability?from=host-osl-1&to=host-osl-1')).toMatchObject({ status: 'reachable', cost: 0 })
  expect(await told('/reachability?from=host-osl-1&to=host-osl-2')).toMatchObject({ status: 'unreachable' })
  expect(await told('/links?a=host-osl-1&b=host-osl-2')).toMatchObject({ status: 'down', live: false })
  platform.inventoryState.links = links
  api.api.deps.state.forget()
})

test('resources are found by a part of their name', async () => {
  const found = await api.get('/resources?q=fjord')
  expect(found.body.items).toEqual([{ kind: 'tenant', id: 'tenant-1', name: 'Fjord Bank', aliases: [] }])
  expect((await api.get('/vms/vm-2')).body).toEqual({
    id: 'vm-2',
    host: 'host-osl-2',
    running: false,
    ramMib: 1024,
    cpuMc: 500,
    haGroup: null,
    tenant: 'tenant-1',
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    affinityGroup: null,
    startedAt: null,
    busy: null,
    device: null,
  })
})

test('an unreachable platform makes health unknown, and no answer uses an older state', async () => {
  platform.down = true
  api.api.deps.state.forget()
  expect((await api.get('/nodes/node-osl-1/health')).body).toMatchObject({ status: 'unknown', stale: true })
  const nodes = (await api.get('/shards/db-osl-1/nodes')).body.items as unknown as { status: string }[]
  expect(nodes.map(({ status }) => status)).toEqual(['unknown', 'unknown'])
  for (const path of ['/vms/vm-1', '/links?a=host-osl-1&b=host-osl-3', '/reachability?from=host-osl-1&to=host-osl-3']) {
    expect([path, (await api.get(path)).status]).toEqual([path, 503])
  }
  platform.down = false
  api.api.deps.state.forget()
  expect((await api.get('/nodes/node-osl-1/health')).body).toMatchObject({ status: 'nominal' })
})

test('a dry run reports what a convergence would change and changes nothing', async () => {
  const begun = platform.begun.length
  const [one, other] = platform.inventoryState.nodes.filter(({ shard }) => shard === 'db-osl-1')
  Object.assign(one!, { status: 'nominal' })
  Object.assign(other!, { status: 'critical' })
  const told = {
    dryRun: true,
    possible: true,
    detail: '1 of 2 nodes would change',
    nodes: [
      { id: one!.id, changes: [] },
      { id: other!.id, changes: ['restart its process'] },
    ],
  }
  expect((await api.get('/shards/db-osl-1/converge?dry_run=true', { as: api.tokens.agent })).body).toEqual(told)
  const asking = { body: reason, key: 'conv-dry', as: api.tokens.operator }
  expect((await api.post('/shards/db-osl-1/converge?dry_run=true', asking)).body).toEqual(told)
  expect(platform.begun).toHaveLength(begun)
  expect((await api.post('/shards/db-osl-1/converge?dry_run=perhaps', asking)).status).toBe(422)
  expect((await api.get('/shards/db-osl-1/converge')).status).toBe(422)
  expect((await api.get('/shards/none/converge?dry_run=true')).status).toBe(404)
  // The same key, now without: it is done.
  expect((await api.post('/shards/db-osl-1/converge', asking)).body.detail).toBe('db-osl-1 is done')
  expect(platform.begun).toHaveLength(begun + 1)
})

test('if the platform has no dry run, the answer says that the effect is unknown', async () => {
  const { wouldConverge } = platform
  platform.wouldConverge = async () => null
  const { body } = await api.get('/shards/db-osl-1/converge?dry_run=true', { as: api.tokens.agent })
  expect(body).toMatchObject({ possible: false, nodes: [], detail: 'The platform has no dry run of this action.' })
  platform.wouldConverge = wouldConverge
})

test('a shard is converged once per key, and the next read returns the new state', async () => {
  const asking = { body: reason, key: 'conv-1', as: api.tokens.operator }
  const first = await api.post('/shards/db-osl-1/converge', asking)
  expect([first.status, first.body.detail]).toEqual([200, 'db-osl-1 is done'])
  await api.post('/shards/db-osl-1/converge', asking)
  expect(platform.begun.filter((key) => key.endsWith(':conv-1'))).toHaveLength(1)
  const nodes = (await api.get('/shards/db-osl-1/nodes')).body.items as unknown as { status: string }[]
  expect(nodes.map(({ status }) => status)).toEqual(['nominal', 'nominal'])
})

test('an agent converges under its step key, and asks for the outcome by that key', async () => {
  const incident = await claimedIncident(api.db)
  const key = await announced(api.db, incident, 'converge_shard', { id: 'db-osl-1' })
  expect((await api.post('/shards/db-osl-1/converge', { body: reason, key, as: api.tokens.agent })).status).toBe(200)
  const effect = await api.get(`/effects/${encodeURIComponent(key)}`, { as: api.tokens.agent })
  expect(effect.body).toMatchObject({ key, status: 'done' })
})

test('a lost answer is looked up, and the write is not sent twice', async () => {
  const incident = await claimedIncident(api.db)
  const key = await announced(api.db, incident, 'converge_shard', { id: 'db-osl-1' })
  platform.script[key] = 'lost_after'
  const answer = await api.post('/shards/db-osl-1/converge', { body: reason, key, as: api.tokens.agent })
  expect(answer.status).toBe(200)
  expect(platform.begun.filter((begun) => begun === key)).toHaveLength(1)
})

test('a write that never reached the platform counts as failed only after a minute', async () => {
  const incident = await claimedIncident(api.db)
  const key = await announced(api.db, incident, 'converge_shard', { id: 'db-osl-1' })
  platform.script[key] = 'lost_before'
  const answer = await api.post('/shards/db-osl-1/converge', { body: reason, key, as: api.tokens.agent })
  expect([answer.status, answer.body.code]).toEqual([504, 'EFFECT_RUNNING'])
  const effect = async () => (await api.get(`/effects/${encodeURIComponent(key)}`)).body
  await aged(key, 10)
  expect(await effect()).toMatchObject({ status: 'running' })
  await aged(key, 61)
  expect(await effect()).toMatchObject({ status: 'failed', detail: 'the write never reached the platform' })
  platform.script[key] = 'done'
  const again = await api.post('/shards/db-osl-1/converge', { body: reason, key, as: api.tokens.agent })
  expect([again.status, again.body.code]).toEqual([502, 'EFFECT_FAILED'])
  expect(platform.begun).not.toContain(key)
})

test('a refusal and an error of the platform are reported as failed', async () => {
  for (const how of ['failed', 'refused'] as const) {
    platform.script['db-osl-1'] = how
    const answer = await api.post('/shards/db-osl-1/converge', { body: reason, key: `conv-${how}` })
    expect([answer.status, answer.body.code]).toEqual([502, 'EFFECT_FAILED'])
  }
  delete platform.script['db-osl-1']
})

test('an effect whose process died is settled by asking the platform for its key', async () => {
  const key = 'api:tok:died'
  await acceptEffect(api.db, { key, incidentId: null, tool: 'converge_shard', actionDigest: 'd' })
  await platform.converge('db-osl-1', key)
  expect((await api.get(`/effects/${key}`)).body.status).toBe('running')
  await aged(key, 6)
  expect((await api.get(`/effects/${key}`)).body.status).toBe('done')
  expect((await api.get('/effects/never')).status).toBe(404)
})

test('a plan is made from the inventory, and stored with the fingerprint of its state', async () => {
  const plan = await proposed()
  expect(plan.steps).toHaveLength(2)
  const read = await api.get(`/placement/proposals/${plan.proposal_id}`)
  expect(read.body).toMatchObject({ state: 'planned', currentFingerprint: plan.stateFingerprint })
  const unknown = { intent: 'recover', host_ids: ['nowhere'], use_rack_constraints: true }
  const refused = await api.post('/placement/proposals', { body: unknown })
  expect([refused.status, refused.body.errors]).toEqual([
    400,
    [{ path: 'hostIds.0', message: 'host nowhere is unknown' }],
  ])
})

test('the reserved capacity of a host is given to no VM, and a plan from before a change of it no longer fits', async () => {
  const before = await proposed()
  const { hosts } = platform.inventoryState
  const kept = hosts.map((each) => ({ ...each }))
  for (const each of hosts) Object.assign(each, { ramReserveMib: each.ramMib, cpuReserveMc: 0 })
  try {
    const body = { intent: 'recover', host_ids: ['host-osl-2'], use_rack_constraints: true }
    await eventually('the reserve', async () => {
      const { body: is } = await api.get('/hosts/host-osl-1')
      return is.ramReserveMib === hosts[0]!.ramMib
    })
    const read = await api.get(`/placement/proposals/${before.proposal_id}`)
    expect(read.body).toMatchObject({ unfitBecause: expect.stringContaining('is short by') })
    expect(read.body.currentFingerprint).not.toBe(before.stateFingerprint)
    expect((await api.post('/placement/proposals', { body })).body).toMatchObject({ state: 'infeasible' })
  } finally {
    platform.inventoryState.hosts = kept
  }
})

test('an empty plan says that the named host is live and names the dead host', async () => {
  const body = { intent: 'recover', host_ids: ['host-osl-1'], use_rack_constraints: true }
  expect((await api.post('/placement/proposals', { body })).body).toMatchObject({
    state: 'no_action',
    reason: 'host host-osl-1 is live, so nothing can be recovered from it, but host host-osl-2 is dead and has 2 VMs',
  })
})

test('an agent runs a plan only with the approval that its run used for exactly this plan', async () => {
  const incident = await claimedIncident(api.db)
  const plan = await proposed()
  const identity = { plan: plan.planDigest }
  const execute = (key: string) =>
    api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
      body: { reason: 'the host is dead' },
      key,
      headers: { 'if-match': plan.stateFingerprint },
      as: api.tokens.agent,
    })
  const bare = await announced(api.db, incident, 'execute_migration', identity)
  expect((await execute(bare)).body.code).toBe('UNJUDGED')
  const pending = await asked(api.db, incident, { identity })
  expect((await execute(await announced(api.db, incident, 'execute_migration', identity, pending))).status).toBe(403)
  await api.db.updateTable('approval').set({ status: 'withdrawn' }).where('id', '=', pending).execute()
  const other = await asked(api.db, incident, { identity: { plan: 'another' } })
  await approve(other)
  await consumed(api.db, incident, other)
  expect((await execute(await announced(api.db, incident, 'execute_migration', identity, other))).status).toBe(403)
  expect(platform.begun.filter((key) => key.startsWith(incident))).toEqual([])
})

async function approve(id: string) {
  const { body } = await api.post(`/approvals/${id}/token`, {
    as: api.tokens.approver,
    body: { decision: 'approve' },
  })
  await api.post(`/approvals/${id}/decision`, {
    body: { decision: 'approve', token: body.token },
    as: api.tokens.approver,
  })
}

test('a plan is refused before its first step if the state differs from the approved state', async () => {
  const plan = await proposed()
  const execute = (headers: Record<string, string>) =>
    api.post(`/placement/proposals/${plan.proposal_id}/execute`, { body: { reason: 'the host is dead' }, headers })
  expect((await execute({})).status).toBe(428)
  const host = platform.inventoryState.hosts.find(({ id }) => id === 'host-osl-3')
  Object.assign(host ?? {}, { state: 'dead' })
  const answer = await execute({ 'if-match': plan.stateFingerprint })
  expect([answer.status, answer.body.code]).toEqual([412, 'STATE_CHANGED'])
  const current = String(answer.body.currentFingerprint)
  if ((plan.steps as { to: string }[]).some(({ to }) => to === 'host-osl-3')) {
    // Approved for today's state, the plan still must fit it.
    expect((await execute({ 'if-match': current })).status).toBe(412)
  }
  Object.assign(host ?? {}, { state: 'live' })
  api.api.deps.state.forget()
  expect(platform.begun.filter((key) => /:\d$/.test(key) && key.startsWith('api:'))).toEqual([])
})

test('a plan goes on after a failed step, and each step is a row of the incident', async () => {
  const incident = await claimedIncident(api.db)
  const plan = await proposed()
  const identity = { plan: plan.planDigest }
  await api.owner.updateTable('proposal').set({ incidentId: incident }).where('id', '=', plan.proposal_id).execute()
  const approval = await asked(api.db, incident, { identity })
  await approve(approval)
  await consumed(api.db, incident, approval)
  const key = await announced(api.db, incident, 'execute_migration', identity, approval)
  platform.script[`${key}:1`] = 'failed'
  const asking = {
    body: { reason: 'the host is dead' },
    key,
    headers: { 'if-match': plan.stateFingerprint },
    as: api.tokens.agent,
  }
  const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, asking)
  expect(answer.status).toBe(200)
  expect(answer.body).toMatchObject({
    failed: 1,
    steps: [
      { step: 1, status: 'FAILED' },
      { step: 2, status: 'OK' },
    ],
  })
  const rows = (await eventsOf(api.db, incident)).filter(
    ({ kind }) => kind === 'step_started' || kind === 'step_finished',
  )
  // Both may run at once, so only the order of each one's own rows is told.
  const byStep = rows.toSorted((a, b) => String(a.stepKey?.at(-1)).localeCompare(String(b.stepKey?.at(-1))))
  expect(byStep.map(({ kind, stepKey }) => [kind, stepKey])).toEqual([
    ['step_started', `${key.replace('tool_started', 'step_started')}:1`],
    ['step_finished', `${key.replace('tool_started', 'step_finished')}:1`],
    ['step_started', `${key.replace('tool_started', 'step_started')}:2`],
    ['step_finished', `${key.replace('tool_started', 'step_finished')}:2`],
  ])
  // The state has changed by now, and the same request is still answered with what was done.
  await api.db.deleteFrom('idempotency').where('key', '=', key).execute()
  expect((await api.post(`/placement/proposals/${plan.proposal_id}/execute`, asking)).body).toMatchObject({
    failed: 1,
  })
  expect(platform.begun.filter((begun) => begun.startsWith(`${key}:`))).toHaveLength(2)
})
