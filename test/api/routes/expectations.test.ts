import { afterEach, beforeAll, expect, test } from '@jest/globals'
import pino from 'pino'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { openManualChange } from '../../../db/incidents/manual-change.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import type { Alert } from '../../../domain/alert.ts'
import { runWatchdogRound } from '../../../effects/watchdog.ts'
import { takeLooks } from '../../../worker/looks.ts'
import { corePort, useApi } from '../../support/api.ts'
import { anAlert, claimedIncident, moveClock, openedIncident } from '../../support/database.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const day = 86_400_000
const inADay = () => new Date(Date.now() + day).toISOString()
const mark = (more: object = {}) => ({ until: inADay(), reason: 'The backup makes it lag.', ...more })
const onReplica = { labels: { alertname: 'disk_pressure', node: 'node-osl-2' } }

// The inventory is what the platform told last.
beforeAll(async () => void (await api.get('/nodes/node-osl-2/health')))
afterEach(async () => {
  await moveClock(api.owner, '0 seconds')
  for (const { id } of await inForce()) await api.post(`/expectations/${id}/end`)
  platform.down = false
  const replica = platform.inventoryState.nodes.find(({ id }) => id === 'node-osl-2')
  Object.assign(replica ?? {}, { status: 'degraded', reason: 'replica is 42 s behind' })
  api.api.deps.state.forget()
})

type Mark = { id: string; inForce: boolean }
async function inForce(): Promise<Mark[]> {
  const { items } = (await api.get('/expectations')).body as unknown as { items: Mark[] }
  return items.filter((each) => each.inForce)
}

const core = corePort(api)
const look = () => takeLooks({ db: api.db, core, log: pino({ level: 'silent' }) })
const standing = async (id: string) => (await api.get(`/incidents/${id}`)).body
const noted = async (id: string) => {
  const { items } = (await api.get(`/incidents/${id}/events`)).body as unknown as {
    items: { kind: string; detail: string; metadata: { code?: string } }[]
  }
  return items.flatMap(({ kind, detail, metadata }) => (kind === 'noted' ? [`${metadata.code}: ${detail}`] : []))
}

/** An alert on the replica whose incident is marked; then it ends. */
async function expected(more: object = {}): Promise<{ id: string; alert: Alert }> {
  const alert = anAlert({ startsAt: new Date(Date.now() - 60_000).toISOString(), ...onReplica })
  const id = (await ingestAlert(api.db, alert)).incidentId ?? ''
  expect((await api.post(`/incidents/${id}/expected`, { body: mark(more) })).status).toBe(201)
  return { id, alert }
}

async function firesAgain(alert: Alert): Promise<string> {
  await ingestAlert(api.db, { ...alert, status: 'resolved', endsAt: new Date().toISOString() })
  const again = await ingestAlert(api.db, { ...alert, startsAt: new Date().toISOString() })
  return again.incidentId ?? ''
}

test('a mark ends its incident, stops its run and is listed with the state at that time', async () => {
  const id = await claimedIncident(api.db, onReplica)
  const made = await api.post(`/incidents/${id}/expected`, { body: mark(), as: api.tokens.operator })
  expect(made).toMatchObject({
    status: 201,
    body: {
      subject: 'alert',
      inForce: true,
      createdBy: 'operator',
      state: { health: 'degraded', severity: 'warning' },
    },
  })
  expect(await standing(id)).toMatchObject({
    ...{ status: 'resolved', outcome: 'expected', closedBy: 'person' },
    resolution: expect.stringMatching(/^operator marked this as expected until \d{4}-\d\d-\d\d \d\d:\d\d UTC: /),
  })
  expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
  expect(await inForce()).toMatchObject([{ id: made.body.id }])
})

test('an alert that returns with the same state ends as expected, without a run', async () => {
  const { id, alert } = await expected()
  expect(await firesAgain(alert)).toBe(id)
  expect(await look()).toBe(1)
  expect(await standing(id)).toMatchObject({
    status: 'resolved',
    outcome: 'expected',
    closedBy: 'code',
    attempt: 0,
    resolution: expect.stringMatching(/^Expected by admin until \d{4}-\d\d-\d\d \d\d:\d\d UTC \(.+\): \w/),
  })
})

test('an alert that returns with another state is investigated, and the incident shows the difference', async () => {
  const { id, alert } = await expected()
  const replica = platform.inventoryState.nodes.find((each) => each.id === 'node-osl-2')
  Object.assign(replica ?? {}, { status: 'critical', reason: 'the replica does not answer' })
  api.api.deps.state.forget()
  await firesAgain(alert)
  await look()
  expect(await standing(id)).toMatchObject({ status: 'open', outcome: null })
  expect(await noted(id)).toContainEqual(
    expect.stringMatching(/^not_as_expected: .*status was degraded and is critical/),
  )
})

test('an alert whose state cannot be read when it returns is not expected', async () => {
  const { id, alert } = await expected()
  platform.down = true
  api.api.deps.state.forget()
  await firesAgain(alert)
  await look()
  expect(await standing(id)).toMatchObject({ status: 'open' })
  expect(await noted(id)).toContainEqual(expect.stringContaining('the platform cannot be reached'))
})

test('if a mark expires while its alert fires, the alert is investigated', async () => {
  const { id } = await expected({ until: new Date(Date.now() + 3_600_000).toISOString() })
  await moveClock(api.owner, '59 minutes')
  await runWatchdogRound(api.api.deps)
  expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'expected' })
  await moveClock(api.owner, '61 minutes')
  await runWatchdogRound(api.api.deps)
  expect(await standing(id)).toMatchObject({ status: 'open', reopened: 1 })
})

test('a mark that is withdrawn ends at once, and only once', async () => {
  const { id } = await expected()
  const [made] = await inForce()
  const end = () => api.post(`/expectations/${made?.id}/end`, { as: api.tokens.operator })
  expect(await end()).toMatchObject({ status: 200, body: { inForce: false } })
  await runWatchdogRound(api.api.deps)
  expect(await standing(id)).toMatchObject({ status: 'open' })
  expect((await end()).status).toBe(404)
})

test('a mark on a resource covers another alert there, and a mark on a type covers another resource', async () => {
  await expected({ subject: 'resource' })
  const other = await openedIncident(api.db, { ...onReplica, name: 'replication_lag' })
  await look()
  expect(await standing(other)).toMatchObject({ status: 'resolved', outcome: 'expected' })
  await api.post(`/expectations/${(await inForce())[0]?.id}/end`)

  await expected({ subject: 'type' })
  const elsewhere = await openedIncident(api.db, { labels: { alertname: 'disk_pressure' } })
  await look()
  expect((await noted(elsewhere)).at(-1)).toMatch(/not_as_expected.*the resource is not known any more/)
})

test('a state that cannot be read now cannot be marked', async () => {
  const id = await openedIncident(api.db, onReplica)
  platform.down = true
  api.api.deps.state.forget()
  expect(await api.post(`/incidents/${id}/expected`, { body: mark() })).toMatchObject({
    status: 409,
    body: { code: 'UNREADABLE' },
  })
  expect(await standing(id)).toMatchObject({ status: 'open' })
})

test.each([
  ['a date that is over', { until: '2020-01-01T00:00:00Z' }, 422],
  ['a date years ahead', { until: '2099-01-01T00:00:00Z' }, 422],
  ['no date', { until: undefined }, 422],
  ['no reason', { reason: ' ' }, 422],
  ['a resource where there is none', { subject: 'resource' }, 409],
])('%s makes no mark', async (_, more, status) => {
  const id = await openedIncident(api.db)
  expect((await api.post(`/incidents/${id}/expected`, { body: mark(more) })).status).toBe(status)
  expect(await inForce()).toEqual([])
})

test('an incident without an alert can be marked by its type alone', async () => {
  const body = { type: 'slow_backup', severity: 'warning', title: 'The backup feels slow' }
  const id = String((await api.post('/incidents', { body })).body.id)
  expect((await api.post(`/incidents/${id}/expected`, { body: mark() })).body.code).toBe('NO_ALERT')
  expect((await api.post(`/incidents/${id}/expected`, { body: mark({ subject: 'type' }) })).status).toBe(201)
})

test('people who may not manage incidents can neither set nor withdraw a mark', async () => {
  const { id } = await expected()
  const [made] = await inForce()
  for (const role of ['viewer', 'agent', 'ingest'] as const) {
    const as = api.tokens[role]
    expect((await api.post(`/incidents/${id}/expected`, { body: mark(), as })).status).toBe(403)
    expect((await api.post(`/expectations/${made?.id}/end`, { as })).status).toBe(403)
  }
  expect((await api.get('/expectations', { as: api.tokens.viewer })).status).toBe(200)
  expect(await inForce()).toHaveLength(1)
})

test('a token for some types marks no resource, because a resource also has incidents of other types', async () => {
  const minted = await api.post('/tokens', {
    body: { name: 'disks', role: 'operator', operator: 'operator', scopes: ['type:disk_pressure'] },
  })
  const as = String(minted.body.token)
  const id = await openedIncident(api.db, onReplica)
  const ask = (subject: string) => api.post(`/incidents/${id}/expected`, { body: mark({ subject }), as })
  expect(await ask('resource')).toMatchObject({ status: 403, body: { code: 'OUT_OF_SCOPE' } })
  expect((await ask('alert')).status).toBe(201)
})

test('the state of a resource is reported with the fields that a mark compares', async () => {
  const state = async (path: string) => (await api.get(`/resources/${path}/state`)).body
  expect(await state('node/node-osl-2')).toEqual({
    health: 'degraded',
    observed: 'node node-osl-2 is degraded (replica is 42 s behind)',
    fields: { status: 'degraded', role: 'replica', shard: 'db-osl-1' },
  })
  expect(await state('host/host-osl-4')).toMatchObject({
    health: 'nominal',
    observed: expect.stringContaining('empty'),
  })
  expect(await state('host/host-osl-2')).toMatchObject({ health: 'degraded' })
  expect(await state('vm/vm-1')).toMatchObject({ health: 'nominal', fields: { host: 'host-osl-1', running: true } })
  expect(await state('node/nowhere')).toMatchObject({ health: 'unknown' })
  platform.down = true
  api.api.deps.state.forget()
  expect(await state('node/node-osl-2')).toMatchObject({
    health: 'unknown',
    observed: 'the platform cannot be reached',
  })
})

test("a person's own write is not marked as expected, because no alert fires there", async () => {
  const operatorId = await ensureOperator(api.db, 'admin', 'admin')
  const { id } = await api.db.transaction().execute((trx) =>
    openManualChange(
      trx,
      { operatorId, actor: 'user:admin', name: 'admin' },
      {
        tool: 'vm_stop',
        arguments: { id: 'vm-118', reason: 'for a test' },
        targets: [{ kind: 'vm', id: 'vm-118' }],
        stateFingerprint: 'state',
        risk: 'high',
        reason: 'for a test',
        alone: false,
        mayVote: true,
        summary: 'Stop vm-118',
      },
    ),
  )
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const marked = await api.post(`/incidents/${id}/expected`, { body: { subject: 'type', until, reason: 'a drill' } })
  expect([marked.status, marked.body.detail]).toEqual([409, expect.stringContaining('no alert that could be expected')])
  const { actions } = (await api.get(`/incidents/${id}/surroundings`)).body
  expect(actions).toContainEqual({
    action: 'expected',
    refused: expect.stringContaining('no alert that could be expected'),
  })
})

test('verify finds no unexplained change after actions through the product', async () => {
  const found = [...(await verifyChanges(api.db, 0)).differences, ...(await verifyKept(api.db)).differences]
  // Fixtures of tests claim incidents, and change rows as the owner.
  expect(found.filter(({ subject, what }) => !subject.startsWith('inc_') && !what.includes(' by postgres '))).toEqual(
    [],
  )
})
