import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { closeConnections } from '../../../clients/http.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, openedIncident } from '../../support/database.ts'
import { answerJson, type LocalServer, startLocalServer } from '../../support/local-server.ts'
import { readMail, startMailServer, type TestMailServer } from '../../support/mail-server.ts'

const api = useApi()
let receiver: LocalServer
let mails: TestMailServer
beforeAll(async () => {
  receiver = await startLocalServer()
  mails = await startMailServer({ tls: 'starttls', user: { name: 'nightshift', password: 'correct horse battery' } })
})
afterAll(async () => {
  await closeConnections()
  await receiver.close()
  await mails.close()
})
beforeEach(async () => {
  for (const table of ['delivery', 'destination', 'attempt'])
    await sql`delete from ${sql.table(table)}`.execute(api.owner)
  receiver.seen.length = 0
  receiver.play(answerJson(202, {}))
})

const integrationKey = 'R0123456789ABCDEF0123456789ABCDE'
const webhookSecret = 'a-secret-of-pagerduty'
const onCall = (more = {}) => ({
  kind: 'pagerduty',
  options: { events: `${receiver.url}/v2/enqueue` },
  secrets: { integrationKey, webhookSecret },
  ...more,
})
const opsMail = (options = {}, more = {}) => ({
  kind: 'email',
  options: {
    ...{ host: '127.0.0.1', port: mails.port, user: 'nightshift', ca: mails.ca },
    ...{ from: 'nightshift@example.com', to: ['ops@example.com'] },
    ...options,
  },
  secrets: { password: 'correct horse battery' },
  ...more,
})

test('a destination is set, read, listed and removed, each change is in the audit log, and no secret is shown', async () => {
  const put = await api.put('/destinations/on-call', { body: onCall() })
  expect([put.status, put.body]).toMatchObject([
    200,
    {
      name: 'on-call',
      secrets: ['integrationKey', 'webhookSecret'],
      address: receiver.url,
      enabled: true,
      createdBy: 'admin',
    },
  ])
  await api.put('/destinations/channel', {
    body: { kind: 'teams', secrets: { url: 'https://prod-1.example.com/workflows/abc?sig=SECRET' } },
  })
  const [one, list] = await Promise.all([api.get('/destinations/on-call'), api.get('/destinations')])
  expect(one.body).toEqual(put.body)
  expect(list.body.items).toHaveLength(2)
  await api.post('/destinations/channel/remove')
  expect((await api.get('/destinations/channel')).status).toBe(404)
  expect((await api.post('/destinations/channel/remove')).status).toBe(404)
  const audit = await api.get('/audit?what=destination')
  expect(
    (audit.body.items as unknown as { what: string; subject: string }[]).map(({ what, subject }) => [what, subject]),
  ).toEqual([
    ['destination.removed', 'channel'],
    ['destination.put', 'channel'],
    ['destination.put', 'on-call'],
  ])
  const shown = JSON.stringify([put.body, one.body, list.body, audit.body])
  for (const secret of [integrationKey, webhookSecret, 'SECRET', '/workflows/']) expect(shown).not.toContain(secret)
})

test('people who may read settings see destinations, and people who may change settings change them', async () => {
  await api.put('/destinations/on-call', { body: onCall() })
  const { viewer, operator, agent } = api.tokens
  expect((await api.get('/destinations', { as: viewer })).status).toBe(200)
  for (const as of [viewer, operator, agent]) {
    expect((await api.put('/destinations/on-call', { as, body: onCall() })).status).toBe(403)
    expect((await api.post('/destinations/on-call/test', { as })).status).toBe(403)
    expect((await api.post('/destinations/on-call/remove', { as })).status).toBe(403)
  }
  expect((await api.get('/destinations', { as: agent })).status).toBe(403)
})

test('secrets that a request leaves out stay, and a changed address without them is refused', async () => {
  await api.put('/destinations/ops-mail', { body: opsMail() })
  const kept = await api.put('/destinations/ops-mail', { body: opsMail({ to: ['anna@example.com'] }, { secrets: {} }) })
  expect([kept.status, kept.body.secrets]).toEqual([200, ['password']])
  const moved = await api.put('/destinations/ops-mail', { body: opsMail({ host: 'evil.example' }, { secrets: {} }) })
  expect([moved.status, moved.body]).toMatchObject([
    422,
    {
      code: 'SECRET_ASKED',
      errors: [{ field: 'secrets.password', message: expect.stringContaining('another address') }],
    },
  ])
  expect((await api.get('/destinations/ops-mail')).body.options).toMatchObject({ host: '127.0.0.1' })
  const without = await api.put('/destinations/ops-mail', {
    body: opsMail({ host: 'evil.example', user: null }, { secrets: { password: null } }),
  })
  expect([without.status, without.body.secrets]).toEqual([200, []])
})

const hours = { from: '22:00', to: '06:00', zone: 'Europe/Oslo' }

test.each([
  ['name', 'as night-shift', onCall, 'Ops'],
  ['kind', 'give webhook, pagerduty, teams or email', () => ({ kind: 'pager' })],
  ['secrets.integrationKey', '32 letters and digits', () => onCall({ secrets: {} })],
  ['secrets.integrationKey', 'as R0123456789ABCDEF', () => onCall({ secrets: { integrationKey: 'short' } })],
  ['options.events', 'must be us', () => onCall({ options: { events: 'asia' } })],
  ['options.events', 'must be us', () => onCall({ options: { events: 'http://10.0.0.1/v2' } })],
  ['secrets.url', 'as https://hooks.example.com', () => ({ kind: 'teams' })],
  ['secrets.url', 'as https://example.com/path', () => ({ kind: 'teams', secrets: { url: 'http://example.com/x' } })],
  ['secrets.url', 'as https://hooks.example.com/', () => ({ kind: 'webhook', secrets: { url: 'ftp://x' } })],
  ['secrets.url', 'as https://', () => ({ kind: 'webhook', secrets: { url: 'https://u:p@x' } })],
  ['options.host', 'give a text', () => opsMail({ host: undefined })],
  ['options.port', 'give at least 1', () => opsMail({ port: 0 })],
  ['options.host', 'as smtp.example.com', () => opsMail({ host: 'smtp.example.com\r\nRCPT TO' })],
  ['options.from', 'as ops@example.com', () => opsMail({ from: 'x\r\nBcc: y@example.com' })],
  ['options.to.0', 'as ops@example.com', () => opsMail({ to: ['ops@example.com, evil@example.com'] })],
  ['options.to', 'as ops@example.com', () => opsMail({ to: [] })],
  ['options.user', 'must be one line', () => opsMail({ user: 'a\nb' })],
  ['secrets.password', 'the password of options.user', () => opsMail({}, { secrets: {} })],
  ['options.tls', 'set starttls or tls', () => opsMail({ tls: 'none' })],
  ['options.ca', '-----BEGIN CERTIFICATE-----', () => opsMail({ ca: 'x' })],
  ['route.hours.to', 'as 06:00', () => onCall({ route: { hours: { ...hours, to: '22:00' } } })],
  ['route.hours.zone', 'as Europe/Oslo', () => onCall({ route: { hours: { ...hours, zone: 'Oslo' } } })],
  ['route.types.0', 'as disk_pressure or disk_*', () => onCall({ route: { types: ['Disk'] } })],
  ['route.triggers.0', 'give critical, escalated, approval', () => onCall({ route: { triggers: ['sometimes'] } })],
])('a wrong value is refused at %s, and the refusal names a good value: %s', async (field, words, body, name = 'a') => {
  const answer = await api.put(`/destinations/${name}`, { body: body() })
  const [error] = (answer.body.errors ?? []) as unknown as { field: string; message: string }[]
  expect([answer.status, error?.field]).toEqual([422, field])
  expect(error?.message).toContain(words)
})

test('a test message reaches a mail server, and the log of the destination stays empty', async () => {
  await api.put('/destinations/ops-mail', { body: opsMail() })
  const { status, body } = await api.post('/destinations/ops-mail/test')
  expect([status, body]).toEqual([
    200,
    { outcome: 'sent', status: 250, detail: 'the receiver answered 250', said: expect.any(String) },
  ])
  expect(readMail(mails.taken.at(-1)!).headers.subject).toContain('Test message from Nightshift')
  expect((await api.get('/destinations/ops-mail/deliveries')).body.items).toEqual([])
  expect((await api.get('/audit?what=destination.tested')).body.items).toMatchObject([{ subject: 'ops-mail' }])
})

test('a test message at PagerDuty has the lowest severity and is resolved at once', async () => {
  await api.put('/destinations/on-call', { body: onCall({ enabled: false }) })
  expect((await api.post('/destinations/on-call/test')).body).toMatchObject({ outcome: 'sent', status: 202 })
  const events = receiver.seen.map(({ body }) => JSON.parse(body))
  expect(events.map(({ event_action }) => event_action)).toEqual(['trigger', 'resolve'])
  expect(events[0].payload.severity).toBe('info')
  receiver.play((response) => response.writeHead(400).end(`no such key ${integrationKey}`))
  const refused = await api.post('/destinations/on-call/test')
  expect(refused.body).toMatchObject({ outcome: 'drop', status: 400 })
  expect(JSON.stringify(refused.body)).not.toContain(integrationKey)
})

test('test messages are limited, and a test of an unknown destination gets 404', async () => {
  await api.put('/destinations/on-call', { body: onCall() })
  for (let n = 0; n < 10; n += 1) expect((await api.post('/destinations/on-call/test')).status).toBe(200)
  expect((await api.post('/destinations/on-call/test')).status).toBe(429)
  expect((await api.post('/destinations/nobody/test')).status).toBe(404)
})

test('the messages of a destination are listed, newest first, also after the destination was removed', async () => {
  await api.put('/destinations/on-call', { body: onCall() })
  const ids = [
    await openedIncident(api.db, { severity: 'critical' }),
    await openedIncident(api.db, { severity: 'critical' }),
  ]
  await api.post('/destinations/on-call/remove')
  const { body } = await api.get('/destinations/on-call/deliveries')
  expect(body.items).toMatchObject(
    ids.reverse().map((incidentId) => ({ incidentId, trigger: 'critical', title: 'Disk 96% full', status: 'pending' })),
  )
  const first = await api.get('/destinations/on-call/deliveries?limit=1')
  expect([first.body.items, typeof first.body.nextCursor]).toMatchObject([[{ incidentId: ids[0] }], 'string'])
})

const event = (incidentId: string, change: object = {}) => ({
  event: {
    id: `evt-${Math.random()}`,
    event_type: 'incident.acknowledged',
    resource_type: 'incident',
    occurred_at: new Date().toISOString(),
    agent: { id: 'PLH1HKV', type: 'user_reference', summary: 'Frida' },
    data: { id: 'PGR0VU2', type: 'incident', incident_key: incidentId },
    ...change,
  },
})

const comesIn = (body: object, { secret = webhookSecret, name = 'on-call' } = {}) => {
  const raw = JSON.stringify(body)
  const signature = `v1=${createHmac('sha256', secret).update(raw).digest('hex')}`
  return api.post(`/ingest/pagerduty/${name}`, { raw, as: '', headers: { 'x-pagerduty-signature': signature } })
}

/** The owner, and the notes. */
const standing = async (id: string) => {
  const { status, owner } = (await api.get(`/incidents/${id}`)).body as never as {
    status: string
    owner: { name: string } | null
  }
  const noted = (await eventsOf(api.db, id)).flatMap((row) =>
    row.kind === 'noted' ? [[row.metadata.code, row.actor]] : [],
  )
  return { status, owner: owner?.name ?? null, noted }
}

const incidents = async () => (await api.db.selectFrom('incident').select('id').execute()).length

/** An incident that was told at PagerDuty. */
const told = async (make: typeof openedIncident = openedIncident) => {
  await api.put('/destinations/on-call', { body: onCall() })
  return await make(api.db, { severity: 'critical' })
}

test('an acknowledgement in PagerDuty assigns the incident to the person with that user ID', async () => {
  await api.put('/operators/frida', {
    body: { role: 'operator', maxRisk: 'low', incidentTypes: null, disabled: false, pagerdutyUserId: 'PLH1HKV' },
  })
  const id = await told()
  const before = await incidents()
  const body = event(id)
  expect((await comesIn(body)).body).toEqual({ outcome: 'taken', why: 'frida takes the incident' })
  expect(await standing(id)).toEqual({
    status: 'escalated',
    owner: 'frida',
    noted: [
      ['acknowledged_elsewhere', 'user:frida'],
      ['taken', 'user:frida'],
    ],
  })
  expect((await comesIn(body)).body).toEqual({ outcome: 'ignored', why: 'the same event arrived before' })
  // What our own event brings about there is no news.
  expect((await comesIn(event(id))).body).toMatchObject({ outcome: 'ignored' })
  expect((await standing(id)).noted).toHaveLength(2)
  expect(await incidents()).toBe(before)
})

test('a running investigation is asked to end, and an open question stays', async () => {
  const id = await told(claimedIncident)
  expect((await comesIn(event(id))).body).toMatchObject({ outcome: 'taken' })
  expect(api.told.at(-1)).toMatchObject({ incidentId: id, signal: 'cancelInvestigation' })
  const asked = await told(claimedIncident)
  await sql`update incident set status = 'awaiting_approval' where id = ${asked}`.execute(api.owner)
  const before = api.told.length
  expect((await comesIn(event(asked))).body).toEqual({
    outcome: 'recorded',
    why: 'frida acknowledged the alert at PagerDuty: the approval still waits for an answer',
  })
  expect([api.told.length, (await standing(asked)).status]).toEqual([before, 'awaiting_approval'])
})

test('an acknowledgement of an unknown person, a person without the right, or a program only leaves a row', async () => {
  await api.put('/operators/viewer', {
    body: { role: 'viewer', maxRisk: 'none', incidentTypes: null, disabled: false, pagerdutyUserId: 'PVIEWER' },
  })
  const id = await told()
  const agents = [
    { id: 'PSTRANGER', type: 'user_reference', summary: 'Some\u001b[31m Body' },
    { id: 'PVIEWER', type: 'user_reference', summary: 'Viewer' },
    { id: 'PLH1HKV', type: 'service_reference', summary: 'A service that calls itself so' },
  ]
  for (const agent of agents) expect((await comesIn(event(id, { agent }))).body).toMatchObject({ outcome: 'recorded' })
  expect(await standing(id)).toEqual({
    status: 'open',
    owner: null,
    noted: [
      ['acknowledged_elsewhere', 'system:nightshift'],
      ['acknowledged_elsewhere', 'user:viewer'],
      ['acknowledged_elsewhere', 'system:nightshift'],
    ],
  })
  const [first] = (await eventsOf(api.db, id)).filter(({ kind }) => kind === 'noted')
  expect(first?.detail).toMatch(/^Some.* Body \(PSTRANGER\) acknowledged the alert at PagerDuty$/)
})

test("a resolution in PagerDuty is recorded under the person's name, and resolves and decides nothing here", async () => {
  const id = await told()
  const resolved = event(id, { event_type: 'incident.resolved' })
  expect((await comesIn(resolved)).body).toMatchObject({ outcome: 'recorded' })
  expect(await standing(id)).toEqual({ status: 'open', owner: null, noted: [['resolved_elsewhere', 'user:frida']] })
})

test('an event with another key, of another type, of an old time, or of an unknown incident is ignored', async () => {
  const id = await told()
  const other = await openedIncident(api.db, { severity: 'warning' })
  const before = await incidents()
  const bodies = [
    event('srv01/mysql'),
    event(id, { event_type: 'incident.triggered' }),
    event(id, { occurred_at: new Date(Date.now() - 3_600_000).toISOString() }),
    event(other),
    event(`inc_${'0'.repeat(26)}`),
  ]
  for (const body of bodies)
    expect([(await comesIn(body)).body.outcome, await standing(id)]).toMatchObject([
      'ignored',
      { owner: null, noted: [] },
    ])
  expect(await incidents()).toBe(before)
})

test('an event without the signature of a destination that has a secret is not read', async () => {
  const id = await told()
  await api.put('/destinations/ops-mail', { body: opsMail() })
  await api.put('/destinations/no-secret', { body: onCall({ secrets: { integrationKey } }) })
  const answers = [
    await comesIn(event(id), { secret: 'another-secret-altogether' }),
    await comesIn(event(id), { secret: '', name: 'no-secret' }),
    await comesIn(event(id), { name: 'ops-mail' }),
    await comesIn(event(id), { name: 'nobody' }),
    await api.post('/ingest/pagerduty/on-call', { body: event(id) }),
  ]
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual(Array(5).fill([401, 'NOT_PROVEN']))
  expect(new Set(answers.map(({ body }) => body.detail)).size).toBe(1)
  expect((await standing(id)).noted).toEqual([])
  expect((await comesIn({ messages: [] })).status).toBe(400)
})
