import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { createApi } from '../../../api/app.ts'
import { createToken } from '../../../db/access/tokens.ts'
import { takeNextPart } from '../../../db/alerts/waiting-bodies.ts'
import { connect } from '../../../db/connect.ts'
import { claimIncident, incidentById } from '../../../db/incidents/incidents.ts'
import { eventsOf } from '../../../db/log/events.ts'
import type { StatusPart } from '../../../domain/status.ts'
import { useApi } from '../../support/api.ts'
import { eventually } from '../../support/directory.ts'

const api = useApi()

function recorded(name: string): string {
  return readFileSync(new URL(`../../data/alertmanager/${name}.json`, import.meta.url), 'utf8')
}

type Taken = { fingerprint: string; incidentId: string | null; outcome: string }

async function send(body: string, dialect = 'alertmanager') {
  const answer = await api.post(`/ingest/${dialect}`, { raw: body, as: api.tokens.ingest })
  expect(answer.status).toBe(202)
  return answer.body.alerts as unknown as Taken[]
}

async function incidentsOf(alerts: Taken[]) {
  return await Promise.all(alerts.flatMap(({ incidentId }) => (incidentId ? [incidentById(api.db, incidentId)] : [])))
}

async function firstRow(alert: Taken | undefined) {
  const [row] = await eventsOf(api.db, alert?.incidentId ?? '', { limit: 1 })
  if (row?.kind !== 'alert_received') throw new Error('the incident does not begin with its alert')
  return row
}

/** Only what these bodies say: each test that needs a fresh fingerprint rewrites it. */
function renamed(body: string, suffix: string): string {
  return body.replace(/"fingerprint": "([0-9a-f]+)"/g, `"fingerprint": "$1${suffix}"`)
}

test('one firing alert opens one incident of its type and wakes the queue', async () => {
  const before = api.triggered.length
  const [alert] = await send(recorded('service-down'))
  expect(alert?.outcome).toBe('opened')
  const [incident] = await incidentsOf([alert as Taken])
  expect(incident).toMatchObject({
    type: 'service_down',
    severity: 'critical',
    status: 'open',
    severitySource: 'alert',
  })
  expect(api.triggered.length).toBe(before + 1)
})

test('a repeated alert only raises its counter', async () => {
  const [opened] = await send(recorded('replication-lag'))
  const rows = (await eventsOf(api.db, opened?.incidentId ?? '')).length
  const [again] = await send(recorded('replication-lag'))
  expect(again).toEqual({ ...opened, outcome: 'repeated' })
  expect(await eventsOf(api.db, opened?.incidentId ?? '')).toHaveLength(rows)
  const stored = await api.db
    .selectFrom('alert')
    .select('count')
    .where('fingerprint', '=', opened?.fingerprint ?? '')
    .execute()
  expect(stored).toEqual([{ count: 2 }])
})

/** Without it, an incident is over only after its alerts were quiet for two minutes. */
async function withoutQuietTime(): Promise<void> {
  await sql`insert into platform_config (key, value) values ('alert.quiet', '0') on conflict do nothing`.execute(api.db)
}

test('the end of an alert closes nothing at once, because the alert has to stay quiet first', async () => {
  const body = renamed(recorded('replication-lag'), 'quiet')
  const [opened] = await send(body)
  await send(renamed(recorded('replication-lag-resolved'), 'quiet'))
  expect(await incidentById(api.db, opened?.incidentId ?? '')).toMatchObject({ status: 'open' })
})

test('the end of an alert closes an incident without a run', async () => {
  await withoutQuietTime()
  await send(recorded('replication-lag'))
  const [ended] = await send(recorded('replication-lag-resolved'))
  expect(ended?.outcome).toBe('resolved')
  const [incident] = await incidentsOf([ended as Taken])
  expect(incident).toMatchObject({ status: 'resolved' })
})

test('the end of an alert is sent to the run that works on it', async () => {
  const body = renamed(recorded('replication-lag'), 'run')
  const [opened] = await send(body)
  const incidentId = opened?.incidentId ?? ''
  await api.db.transaction().execute((trx) =>
    claimIncident(trx, {
      incidentId,
      attempt: 1,
      workflowId: `investigate:${incidentId}:1`,
      role: 'leader',
      groupId: 'grp_1',
      timeBudgetSeconds: 1800,
    }),
  )
  await send(renamed(recorded('replication-lag-resolved'), 'run'))
  expect(api.told.at(-1)).toEqual({ signal: 'alertResolved', incidentId, attempt: 1 })
})

test('a group of three alerts opens three incidents', async () => {
  const alerts = await send(recorded('disk-pressure-group-of-3'))
  expect(alerts.map(({ outcome }) => outcome)).toEqual(['opened', 'opened', 'opened'])
  expect(new Set(alerts.map(({ fingerprint }) => fingerprint)).size).toBe(3)
  expect(new Set(alerts.map(({ incidentId }) => incidentId)).size).toBe(3)
})

test('an alert that ended in a firing group resolves only its own incident', async () => {
  const before = await send(recorded('disk-pressure-group-of-3'))
  const after = await send(recorded('mixed-one-resolved-two-firing'))
  expect(after.map(({ outcome }) => outcome).sort()).toEqual(['repeated', 'repeated', 'resolved'])
  const incidents = await incidentsOf(before)
  expect(incidents.map((incident) => incident?.status).sort()).toEqual(['open', 'open', 'resolved'])
})

test('a group that the sender truncated is marked on its incidents', async () => {
  const alerts = await send(renamed(recorded('disk-pressure-50-of-72-truncated'), 'cut'))
  expect(alerts).toHaveLength(50)
  const row = await firstRow(alerts[0])
  expect(row.metadata.truncatedAlerts).toBe(22)
  expect(row.detail).toContain('22 more alerts')
})

test('an unknown severity becomes a warning by default, and the incident says so', async () => {
  const [alert] = await send(recorded('hostile-labels'))
  const [incident] = await incidentsOf([alert as Taken])
  expect(incident).toMatchObject({ severity: 'warning', severitySource: 'default' })
  expect((await firstRow(alert)).detail).toContain('by default: the sender reported "bogus-severity"')
})

test('an alert without a severity becomes a warning by default', async () => {
  const [alert] = await send(recorded('no-severity-no-instance'))
  expect((await firstRow(alert)).detail).toContain('by default: the sender reported nothing')
})

test('hostile text is stored literally, as data', async () => {
  const [alert] = await send(recorded('hostile-labels'))
  const row = await api.db
    .selectFrom('alert')
    .select(['labels', 'annotations'])
    .where('fingerprint', '=', alert?.fingerprint ?? '')
    .executeTakeFirstOrThrow()
  expect(row.labels.alertname).toBe('weird "name"; DROP TABLE incident;--')
  expect(row.annotations.description).toContain('ignore all previous instructions')
  expect((await api.get(`/incidents/${alert?.incidentId}`)).body.type).toBe('weird_name_drop_table_incident')
})

test('an alert of 160 kB is accepted and cut', async () => {
  const [alert] = await send(recorded('oversize-160-kb'))
  const row = await firstRow(alert)
  expect(row.metadata.cappedFields.length).toBeGreaterThan(0)
  expect(row.detail).toContain('shortened')
  expect(JSON.stringify(row).length).toBeLessThan(20_000)
})

test('the generic dialect also opens an incident', async () => {
  const [alert] = await send(
    JSON.stringify({ title: 'Backup failed', severity: 'high', labels: { host: 'h1' } }),
    'generic',
  )
  expect((await incidentsOf([alert as Taken]))[0]).toMatchObject({ severity: 'critical' })
})

test.each([
  ['not JSON', '{', 400],
  ['nothing', '', 400],
  ['an array', '[]', 400],
  ['no alerts', '{"version":"4"}', 400],
])('a body that is %s is refused permanently', async (_name, raw, status) => {
  const answer = await api.post('/ingest/alertmanager', { raw, as: api.tokens.ingest })
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
})

test('an alert without a token, with a wrong token, or with a token of another role is refused', async () => {
  const raw = recorded('service-down')
  expect((await api.post('/ingest/alertmanager', { raw, as: '' })).status).toBe(401)
  expect((await api.post('/ingest/alertmanager', { raw, as: 'nst_wrong' })).status).toBe(401)
  for (const role of ['viewer', 'operator', 'approver', 'agent'] as const) {
    expect((await api.post('/ingest/alertmanager', { raw, as: api.tokens[role] })).status).toBe(403)
  }
})

/** A group as Alertmanager sends it: one body, however many alerts are in it. */
function group(status: 'firing' | 'resolved', count: number, change: object = {}): string {
  const [startsAt, endsAt] = ['2026-11-21T01:00:00Z', '2026-11-21T01:30:00Z']
  const alerts = Array.from({ length: count }, (_, n) => ({
    status,
    labels: { alertname: 'TargetDown', instance: `web-${n}:9100` },
    annotations: { summary: 'The target is down' },
    startsAt,
    endsAt: status === 'resolved' ? endsAt : '0001-01-01T00:00:00Z',
    fingerprint: `group-${n}`,
    ...change,
  }))
  return JSON.stringify({ version: '4', groupKey: '{}:{alertname="TargetDown"}', status, alerts })
}

const healthOf = async (name: string) => {
  const { parts } = (await api.get('/status')).body as unknown as { parts: StatusPart[] }
  return parts.find((part) => part.name === name)
}

const takeAllUp = async () => {
  const outcomes: string[] = []
  for (let taken = await takeNextPart(api.db); taken; taken = await takeNextPart(api.db))
    outcomes.push(...taken.map(({ outcome }) => outcome))
  return outcomes
}

test('a group of 1,200 alerts is stored, shown with its age, and processed as a whole, and so are its ends', async () => {
  const { status, body } = await api.post('/ingest/alertmanager', {
    raw: group('firing', 1_200),
    as: api.tokens.ingest,
  })
  expect({ status, body }).toEqual({ status: 202, body: { alerts: [], waiting: { body: 1, alerts: 1_200 } } })
  expect((await healthOf('large bodies'))?.detail).toMatch(
    /^1 large body waits .* 1200 alerts, the oldest for \d+ s\.$/,
  )
  expect(await takeAllUp()).toEqual(Array.from({ length: 1_200 }, () => 'opened'))
  expect(await healthOf('large bodies')).toMatchObject({ status: 'ok', detail: 'No large alert body waits.' })

  // A word on a waiting alert comes after it, however small the body.
  await api.post('/ingest/alertmanager', { raw: group('firing', 1_200), as: api.tokens.ingest })
  const small = await api.post('/ingest/alertmanager', { raw: group('resolved', 3), as: api.tokens.ingest })
  expect(small.body).toMatchObject({ waiting: { alerts: 3 } })
  const other = await api.post('/ingest/alertmanager', {
    raw: group('firing', 1, { fingerprint: 'of-no-group' }),
    as: api.tokens.ingest,
  })
  expect(other.body).toMatchObject({ alerts: [{ outcome: 'opened' }] })
  const outcomes = await takeAllUp()
  expect(outcomes.slice(-4)).toEqual(['repeated', 'resolved', 'resolved', 'resolved'])
})

test('while three large bodies are read a fourth is refused for now, and a small body is accepted', async () => {
  const size = { 'content-length': String(2 * 1024 * 1024) }
  const ends: (() => void)[] = []
  const slow = Array.from({ length: 3 }, () => {
    // Nothing is asked for before somebody reads, and nothing comes then.
    const body = new ReadableStream(
      { pull: (stream) => new Promise(() => ends.push(() => stream.close())) },
      { highWaterMark: 0 },
    )
    const headers = { authorization: `Bearer ${api.tokens.ingest}`, 'content-type': 'application/json', ...size }
    return api.api.app.request('/api/v1/ingest/alertmanager', {
      method: 'POST',
      body,
      headers,
      duplex: 'half',
    } as object)
  })
  await eventually('the three to be read', () => ends.length === 3)
  const large = { raw: '{}', headers: size, as: api.tokens.ingest }
  const { status, headers } = await api.post('/ingest/alertmanager', large)
  expect([status, headers.get('retry-after')]).toEqual([503, '5'])
  const small = { raw: group('firing', 1, { fingerprint: 'beside-large' }), as: api.tokens.ingest }
  expect((await api.post('/ingest/alertmanager', small)).status).toBe(202)
  for (const end of ends) end()
  expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([400, 400, 400])
  expect((await api.post('/ingest/alertmanager', large)).status).toBe(400)
})

test('secrets of a waiting body are not stored', async () => {
  const annotations = { summary: 'psql postgres://app:hunter2secret@db/app fails' }
  await api.post('/ingest/alertmanager', { raw: group('firing', 1_001, { annotations }), as: api.tokens.ingest })
  const { rows } = await sql<{ text: string }>`select alerts::text as text from waiting_part`.execute(api.owner)
  expect(rows).toHaveLength(5)
  expect(rows.map(({ text }) => text).join()).not.toContain('hunter2secret')
  await sql`delete from waiting_part`.execute(api.owner)
})

test('rejected bodies of a known sender are one row per hour, with the form that would be accepted', async () => {
  const token = await createToken(api.db, { name: 'am-oslo', role: 'ingest', operatorId: null })
  const post = async (raw: string, headers = {}, dialect = 'alertmanager') =>
    (await api.post(`/ingest/${dialect}`, { raw, headers, as: token })).status
  expect(await post('{"payload":{"summary":"x"}}')).toBe(400)
  expect(await post('{}', { 'content-type': 'text/plain' })).toBe(415)
  expect(await post('{}', {}, 'opsgenie')).toBe(404)
  expect(await post(JSON.stringify({ pad: 'x'.repeat(16 * 1024 * 1024) }))).toBe(413)
  const rows = await api.db.selectFrom('refusedBody').selectAll().where('sender', '=', 'am-oslo').execute()
  expect(rows).toMatchObject([{ count: 4, code: 'TOO_LARGE', dialect: 'alertmanager' }])
  const part = await healthOf('alerts')
  expect(part?.status).toBe('failed')
  expect(part?.detail).toMatch(
    /4 requests of am-oslo \(alertmanager\) within a day were refused, .*larger than 16777216 bytes.*set max_alerts/,
  )
})

test('another content type and an unknown dialect are refused', async () => {
  const headers = { 'content-type': 'text/plain' }
  const asked = { raw: recorded('service-down'), as: api.tokens.ingest }
  expect((await api.post('/ingest/alertmanager', { ...asked, headers })).status).toBe(415)
  expect((await api.post('/ingest/constructor', asked)).status).toBe(404)
})

test('while the database is down the sender is told to retry, and nothing is stored in part', async () => {
  const server = createServer((socket) => void socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const down = connect(`postgresql://nobody:nothing@127.0.0.1:${(server.address() as AddressInfo).port}/none`)
  const { app } = createApi({ db: down })
  const answer = await app.request('/api/v1/ingest/alertmanager', {
    method: 'POST',
    headers: { authorization: `Bearer ${api.tokens.ingest}`, 'content-type': 'application/json' },
    body: renamed(recorded('service-down'), 'down'),
  })
  expect(answer.status).toBe(503)
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await app.request('/livez')).status).toBe(200)
  expect((await app.request('/readyz')).status).toBe(503)
  await down.destroy()
  server.close()
  const rows = await api.db.selectFrom('alert').select('id').where('fingerprint', 'like', '%down').execute()
  expect(rows).toEqual([])
})

test("another sender's token cannot end a critical alert, the attempt is marked, and a person is notified once", async () => {
  const of = async (name: string) => await createToken(api.db, { name, role: 'ingest', operatorId: null })
  const [own, replica, foreign] = [await of('am-eu1'), await of('am-eu1'), await of('somebody')]
  await api.put('/config/webhook.escalated.url', { body: { value: 'https://hooks.example.com/x', reason: 'to hear' } })
  const post = async (as: string, fingerprint: string, severity: string, status: string, more: object = {}) => {
    const alert = { fingerprint, title: `Trouble ${fingerprint}`, severity, status, ...more }
    const answer = await api.post('/ingest/generic', { body: alert, as })
    const { alerts } = answer.body as unknown as { alerts: Taken[] }
    return alerts[0] as Taken
  }
  const marks = async (id: string) =>
    (await eventsOf(api.db, id)).filter((event) => event.kind === 'noted' && event.metadata.code === 'foreign_end')
  const alertOf = async (id: string) => {
    const { items } = (await api.get('/alerts?limit=50')).body as unknown as { items: Record<string, unknown>[] }
    return items.find(({ incidentId }) => incidentId === id)
  }
  const id = (await post(own, 'foreign-1', 'critical', 'firing')).incidentId as string
  for (let times = 0; times < 3; times += 1) await post(foreign, 'foreign-1', 'critical', 'resolved')
  expect(await alertOf(id)).toMatchObject({ status: 'unknown', sender: 'am-eu1', endedBy: 'somebody' })
  expect(await marks(id)).toMatchObject([{ detail: expect.stringContaining('ended by another sender: somebody') }])
  const { alerts } = (await api.get(`/incidents/${id}/surroundings`)).body as unknown as { alerts: unknown[] }
  expect(alerts).toMatchObject([{ endedBy: 'somebody' }])
  await post(replica, 'foreign-1', 'critical', 'firing')
  expect(await alertOf(id)).toMatchObject({ status: 'firing', endedBy: null })
  await post(replica, 'foreign-1', 'critical', 'resolved')
  expect(await alertOf(id)).toMatchObject({ status: 'resolved', endedBy: null })

  // A later start by somebody else does not make the alert theirs.
  const taken = (await post(own, 'foreign-3', 'critical', 'firing')).incidentId as string
  const startsAt = new Date(Date.now() + 60_000).toISOString()
  await post(foreign, 'foreign-3', 'critical', 'firing', { startsAt })
  await post(foreign, 'foreign-3', 'critical', 'resolved')
  expect(await alertOf(taken)).toMatchObject({ status: 'unknown', sender: 'am-eu1', endedBy: 'somebody' })

  const other = (await post(own, 'foreign-2', 'warning', 'firing')).incidentId as string
  await post(foreign, 'foreign-2', 'warning', 'resolved')
  expect(await alertOf(other)).toMatchObject({ status: 'resolved', endedBy: 'somebody' })
  expect(await marks(other)).toHaveLength(1)
})
