import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { findStale } from '../../../db/alerts/mass-resolve.ts'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { leaseLooks, recordLook } from '../../../db/incidents/looks.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { dueIncidents, tickIncident } from '../../../db/lifecycle/apply-lifecycle.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { verifyChangesOf } from '../../../db/verify/row-changes.ts'
import { importSource } from '../../../domain/declared-resources.ts'
import type { EventMetadata } from '../../../domain/event.ts'

import { useApi } from '../../support/api.ts'
import { moveClock } from '../../support/database.ts'

const api = useApi()
let minutes = 0
let named = 0

beforeEach(async () => {
  minutes = 0
  await moveClock(api.owner, '0 minutes')
  await api.put('/config/webhook.escalated.url', { body: { value: 'https://hooks.example.com/x', reason: 'to hear' } })
  await api.db.transaction().execute((trx) =>
    declareResources(trx, importSource, {
      resources: [{ kind: 'node', id: 'web-1' }],
      relations: [],
    }),
  )
})

async function pass(more: number): Promise<void> {
  minutes += more
  await moveClock(api.owner, `${minutes} minutes`)
}

type GrafanaAlert = { alertname: string; severity: string; node?: string; reason?: string; resolved?: boolean }

/**
 * The webhook of Grafana's alerting, as its page describes it: of a resolved alert it says why in
 * an annotation.
 */
async function grafana({ alertname, severity, node, reason, resolved = false }: GrafanaAlert) {
  const alert = {
    status: resolved ? 'resolved' : 'firing',
    labels: { alertname, grafana_folder: 'infra', severity, ...(node && { node }) },
    annotations: { summary: `${alertname} is ill`, ...(reason && { grafana_state_reason: reason }) },
    startsAt: '2026-11-25T09:00:00Z',
    endsAt: resolved ? '2026-11-25T09:20:00Z' : '0001-01-01T00:00:00Z',
    fingerprint: `fp-${alertname}`,
    values: resolved ? null : { B: 12 },
  }
  const body = { receiver: 'ns', status: alert.status, alerts: [alert], groupKey: '{}:{}', version: '1' }
  const { body: answer } = await api.post('/ingest/grafana', { body, as: api.tokens.ingest })
  return (answer as unknown as { alerts: { incidentId: string; outcome: string }[] }).alerts[0]!
}

async function begun(change: Partial<GrafanaAlert> = {}) {
  named += 1
  const alert = { alertname: `Rule${named}`, severity: 'warning', ...change }
  const { incidentId: id } = await grafana(alert)
  const ends = async (reason?: string) => await grafana({ ...alert, ...(reason && { reason }), resolved: true })
  return { id, ends, firesAgain: () => grafana(alert), alertname: alert.alertname }
}

/** What the watchdog does in its rounds; a worker sees this where a look is wanted. */
async function watchdog(resource: EventMetadata['looked']['resource'] = null): Promise<void> {
  await findStale(api.db)
  for (let round = 0; round < 4; round += 1) {
    for (const id of await dueIncidents(api.db)) await tickIncident(api.db, id)
    for (const each of await leaseLooks(api.db, 10)) {
      const state = { purpose: each.purpose, verification: null, resource, about: [], observed: 'seen', state: null }
      await recordLook(api.db, each, state, null)
    }
  }
}

const standing = async (id: string) => await incidentById(api.db, id)
const noted = async (id: string) =>
  (await eventsOf(api.db, id)).flatMap((event) => (event.kind === 'noted' ? [event.metadata.code] : []))
const alertOf = async (id: string) =>
  await api.db.selectFrom('alert').select(['status', 'endReason', 'unknownWhy']).where('incidentId', '=', id).execute()
const pages = async (id: string) =>
  await api.db.selectFrom('delivery').select('notification').where('incidentId', '=', id).execute()

/** The log tells of every change, and the rows are as it says. */
async function holds(id: string): Promise<void> {
  expect((await verifyIncident(api.db, id)).differences).toEqual([])
  expect((await verifyChangesOf(api.db, id)).differences).toEqual([])
}

test.each(['NoData', 'Error', 'Paused', 'Updated', 'RuleDeleted', 'NoData, KeepLast', 'MissingSeries', 'SomethingNew'])(
  'an end for %s is not a recovery: the alert is unknown, and after a day its incident is quiet and unproven',
  async (reason) => {
    const { id, ends } = await begun({ node: 'web-1' })
    expect((await ends(reason)).outcome).toBe('unproven')
    expect(await alertOf(id)).toEqual([{ status: 'unknown', endReason: reason, unknownWhy: 'unproven' }])
    await pass(60)
    await watchdog('degraded')
    expect(await standing(id)).toMatchObject({ status: 'open', alerts: { firing: 0, unknown: 1 } })
    // Its sender says so again, and nothing new comes of it.
    await ends(reason)
    await pass(24 * 60 + 1)
    await watchdog('unknown')
    await watchdog('unknown')
    expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'unproven', closedBy: 'code' })
    expect(await noted(id)).toContain('quiet_unproven')
    await holds(id)
  },
)

test('a read of the resource decides: a good state ends the incident, and a bad state is read again later', async () => {
  const { id, ends } = await begun({ node: 'web-1' })
  await ends('Paused')
  await pass(3)
  await watchdog('degraded')
  await pass(14)
  await watchdog('nominal')
  expect(await standing(id)).toMatchObject({ status: 'open' })
  await pass(2)
  await watchdog('nominal')
  const closed = await standing(id)
  expect(closed).toMatchObject({ status: 'resolved', outcome: 'self_resolved' })
  expect(closed?.resolution).toContain('was nominal')
  expect(await alertOf(id)).toMatchObject([{ status: 'resolved', endReason: null }])
  await holds(id)
})

test('a real end, or another firing, removes the doubt', async () => {
  const { id, ends, firesAgain } = await begun({ node: 'web-1' })
  await ends('NoData')
  expect((await firesAgain()).outcome).toBe('repeated')
  expect(await alertOf(id)).toEqual([{ status: 'firing', endReason: null, unknownWhy: null }])
  await ends('NoData')
  expect((await ends()).outcome).toBe('resolved')
  expect(await alertOf(id)).toEqual([{ status: 'resolved', endReason: null, unknownWhy: null }])
  await pass(3)
  await watchdog()
  expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'self_resolved' })
})

test('a person who closes the incident confirms that it is over', async () => {
  const { id, ends } = await begun({ node: 'web-1' })
  await ends('RuleDeleted')
  await api.post(`/incidents/${id}/resolve`, { body: { outcome: 'no_fault', resolution: 'I deleted the rule' } })
  expect(await alertOf(id)).toMatchObject([{ status: 'resolved', endReason: null }])
})

test('a missing series of an unknown resource ends as gone and unproven, and for a critical one people are notified once', async () => {
  const { id, ends } = await begun({ severity: 'critical' })
  const before = (await pages(id)).length
  for (let times = 0; times < 3; times += 1) await ends('MissingSeries')
  expect(await alertOf(id)).toEqual([{ status: 'resolved', endReason: 'MissingSeries', unknownWhy: null }])
  expect((await pages(id)).slice(before)).toMatchObject([{ notification: { trigger: 'notice' } }])
  await pass(3)
  await watchdog()
  expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'unproven' })
  await holds(id)

  const minor = await begun({ severity: 'warning' })
  await minor.ends('MissingSeries')
  expect(await pages(minor.id)).toEqual([])
})

test('Home, the reports, the incident and its alerts show it as unproven, and count it apart', async () => {
  const night = async () => (await api.get('/home')).body.tonight as unknown as Record<string, number>
  const before = await night()
  const gone = await begun()
  const over = await begun()
  await gone.ends('MissingSeries')
  await over.ends()
  await pass(3)
  await watchdog()
  const after = await night()
  const more = ['resolved', 'resolvedAlone', 'unproven'].map((name) => (after[name] ?? 0) - (before[name] ?? 0))
  expect(more).toEqual([1, 1, 1])
  const type = ((await standing(gone.id))?.type ?? '') as string
  const { total } = (await api.get(`/reports?type=${type}`)).body as unknown as { total: Record<string, unknown> }
  expect(total).toMatchObject({ closed: 1, resolved: 0, autoResolved: 0, unproven: 1, resolveSeconds: null })
  const brief = (await api.get(`/incidents/${gone.id}/brief`)).body as unknown as { alert: { state: string } }
  expect(brief.alert.state).toBe('unproven')
  const surroundings = (await api.get(`/incidents/${gone.id}/surroundings`)).body as unknown as { alerts: unknown }
  expect(surroundings.alerts).toMatchObject([{ status: 'resolved', endReason: 'MissingSeries' }])
})

test('"no data" for an unknown alert opens an incident, and does not end a firing alert', async () => {
  const post = async (state: string) => {
    const body = { title: 'Queue is deep', dedup: 'queue-1', state, sender: 'CloudWatch', labels: { node: 'web-1' } }
    const { alerts } = (await api.post('/ingest/generic', { body })).body as unknown as {
      alerts: { incidentId: string; outcome: string }[]
    }
    return alerts[0]!
  }
  const { incidentId: id, outcome } = await post('INSUFFICIENT_DATA')
  expect(outcome).toBe('opened')
  await post('ALARM')
  expect((await post('INSUFFICIENT_DATA')).outcome).toBe('unproven')
  expect(await alertOf(id)).toEqual([{ status: 'unknown', endReason: 'INSUFFICIENT_DATA', unknownWhy: 'unproven' }])
  // As long as its sender says so, it goes on being unknown.
  for (let hours = 0; hours < 30; hours += 10) {
    await pass(600)
    await post('INSUFFICIENT_DATA')
    await watchdog('unknown')
  }
  expect(await standing(id)).toMatchObject({ status: 'open', alerts: { unknown: 1 } })
  expect((await post('OK')).outcome).toBe('resolved')
  await holds(id)
})

test('seventy ends in one group are ends, and so are those of other groups in that minute', async () => {
  const post = async (status: string, alertname: string, count: number) => {
    const alerts = Array.from({ length: count }, (_, index) => ({
      status,
      labels: { alertname, instance: `10.0.0.${index}:9100` },
      annotations: {},
      startsAt: '2026-11-25T09:00:00Z',
      endsAt: status === 'resolved' ? '2026-11-25T09:20:00Z' : '0001-01-01T00:00:00Z',
      fingerprint: `${alertname}-${index}`,
    }))
    const body = { version: '4', status, groupKey: `{}:{alertname="${alertname}"}`, alerts }
    return (await api.post('/ingest/alertmanager', { body, as: api.tokens.ingest })).body
  }
  const groups = { SwitchPortDown: 70, FlappingLink: 1, AmExpire: 1 }
  for (const [name, count] of Object.entries(groups)) await post('firing', name, count)
  for (const [name, count] of Object.entries(groups)) await post('resolved', name, count)
  const of = async (table: 'alert' | 'incident') =>
    await api.db
      .selectFrom(table)
      .select(({ fn }) => ['status', fn.countAll<number>().as('count')])
      .where(table === 'alert' ? 'name' : 'type', 'in', table === 'alert' ? Object.keys(groups) : types)
      .groupBy('status')
      .execute()
  const types = ['switch_port_down', 'flapping_link', 'am_expire']
  expect(await of('alert')).toEqual([{ status: 'resolved', count: 72 }])
  await pass(3)
  for (let round = 0; round < 3; round += 1) await watchdog()
  expect(await of('incident')).toEqual([{ status: 'resolved', count: 72 }])
})

test('an incident with an old spelling of its type keeps it, its repeats find it, and marks and settings of the old spelling apply to the new one', async () => {
  const alert = (fingerprint: string, labels: object = {}) => ({
    status: 'firing',
    labels: { alertname: 'MySQLDown', severity: 'warning', ...labels },
    annotations: {},
    startsAt: '2026-11-25T09:00:00Z',
    fingerprint,
  })
  const post = async (fingerprint: string) => {
    const body = { version: '4', alerts: [alert(fingerprint)] }
    const { alerts } = (await api.post('/ingest/alertmanager', { body })).body as unknown as {
      alerts: { incidentId: string; outcome: string }[]
    }
    return alerts[0]!
  }
  const { incidentId: old } = await post('mysql-old')
  // As version 0.2 stored it, row and log.
  await api.owner.transaction().execute(async (trx) => {
    await sql`set local session_replication_role = replica`.execute(trx)
    await sql`update incident set type = 'my_sqldown' where id = ${old}`.execute(trx)
  })
  expect(await post('mysql-old')).toMatchObject({ incidentId: old, outcome: 'repeated' })
  expect(await standing(old)).toMatchObject({ type: 'my_sqldown' })
  const listed = (await api.get('/incidents?type=mysql_down')).body as unknown as { items: { id: string }[] }
  expect(listed.items.map(({ id }) => id)).toEqual([old])

  await api.put('/config/agent.investigate.my_sqldown', { body: { value: 'none', reason: 'ours' } })
  const { incidentId: fresh } = await post('mysql-new')
  expect(await standing(fresh)).toMatchObject({
    type: 'mysql_down',
    keptReason: expect.stringContaining('agent.investigate is none'),
  })
  await holds(fresh)
  const explained = await api.post('/alerts/explain', {
    body: { dialect: 'alertmanager', body: JSON.stringify({ alerts: [alert('mysql-3')] }) },
  })
  expect(explained.body).toMatchObject({ alerts: [{ type: 'mysql_down' }] })

  const mark = { subject: 'type', until: new Date(Date.now() + 3_600_000).toISOString(), reason: 'a planned failover' }
  const marked = await api.post(`/incidents/${old}/expected`, { body: mark })
  expect([marked.status, marked.body]).toMatchObject([expect.any(Number), {}])
  await post('mysql-4')
  const { rows } = await sql<{ wanted: string }>`
    select look_wanted as wanted from incident join alert on alert.incident_id = incident.id
    where fingerprint = 'mysql-4'`.execute(api.db)
  expect(rows).toEqual([{ wanted: 'expected' }])
})
