import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { runWatchdogRound } from '../../../effects/watchdog.ts'
import { asked } from '../../support/announced.ts'
import { type Asking, useApi } from '../../support/api.ts'
import { claimedIncident, moveClock, openedIncident } from '../../support/database.ts'

const api = useApi()
const why = { reason: 'a planned failover' }

test('incidents are listed newest first, page by page, and filtered', async () => {
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.push(await openedIncident(api.db, { name: 'paged', labels: { alertname: 'paged' } }))
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const answer = await api.get(`/incidents?type=paged&limit=2${cursor ? `&cursor=${cursor}` : ''}`)
    const page = answer.body as unknown as { items: { id: string }[]; nextCursor: string | null }
    seen.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor)
  expect([...seen].sort()).toEqual([...ids].sort())
  expect(seen).toHaveLength(5)
  const none = await api.get('/incidents?type=paged&status=resolved,cancelled&severity=warning&q=disk')
  expect(none.body).toEqual({ items: [], nextCursor: null })
  expect((await api.get('/incidents?status=sleeping')).status).toBe(422)
})

test('a search finds three letters anywhere, one or two letters at the start of a word, and treats no character as a pattern', async () => {
  await openedIncident(api.db, { title: 'Queue of web-zx9 is 100% full' })
  const found = async (q: string) =>
    (await api.get(`/incidents?q=${encodeURIComponent(q)}`)).body.items as unknown as unknown[]
  for (const q of ['b-zx', 'zx', 'Z', '100%', 'QUEUE of']) expect(await found(q)).toHaveLength(1)
  for (const q of ['x9', '%_', '_x', 'web_zx']) expect(await found(q)).toEqual([])
})

test('an incident that a person opens names the person, and wakes the queue', async () => {
  const body = { type: 'disk_pressure', severity: 'critical', title: 'The disk feels full' }
  const answer = await api.post('/incidents', { body, as: api.tokens.operator })
  expect(answer.body).toMatchObject({ status: 'open', severitySource: 'person' })
  const row = await api.db
    .selectFrom('incident')
    .innerJoin('operator', 'operator.id', 'incident.requestedBy')
    .select('operator.name')
    .where('incident.id', '=', String(answer.body.id))
    .executeTakeFirst()
  expect(row).toEqual({ name: 'operator' })
  expect(api.triggered.length).toBeGreaterThan(0)
})

test('a question is an incident of the type question', async () => {
  const answer = await api.post('/agent', { body: { question: 'Which host runs vm-1?' } })
  expect(answer.body).toMatchObject({ type: 'question', title: 'Which host runs vm-1?', severity: 'info' })
})

test('a question may name a node in its own field, and only one resource', async () => {
  const question = 'Why is it slow?'
  const answer = await api.post('/agent', { body: { node: 'node-web-osl-1a', question } })
  expect(answer.body).toMatchObject({ type: 'question', resource: { kind: 'node', id: 'node-web-osl-1a' } })
  const both = { question, node: 'node-web-osl-1a', resource: { kind: 'node', id: 'node-web-osl-1b' } }
  expect(await api.post('/agent', { body: both })).toMatchObject({ status: 409, body: { code: 'AMBIGUOUS' } })
})

test('the log can be read from a sequence number on', async () => {
  const id = await openedIncident(api.db)
  for (const detail of ['one', 'two']) {
    await api.post(`/incidents/${id}/events`, { body: { action: 'commented', detail }, as: api.tokens.operator })
  }
  const rest = await api.get(`/incidents/${id}/events?after=1&limit=1`)
  expect(rest.body).toMatchObject({ items: [{ seq: 2, detail: 'one', actor: 'user:operator' }], nextCursor: '2' })
  expect((await api.get('/incidents/inc_none/events')).status).toBe(404)
})

test('a person who closes an incident stops its run', async () => {
  const id = await claimedIncident(api.db)
  const answer = await api.post(`/incidents/${id}/resolve`, {
    body: { resolution: 'Restarted by hand', outcome: 'repaired' },
  })
  expect(answer.body).toMatchObject({ status: 'resolved' })
  expect(api.told.at(-1)).toEqual({ signal: 'cancelInvestigation', incidentId: id, attempt: 1 })
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({ kind: 'resolved', actor: 'user:admin' })
  const late = await api.post(`/incidents/${id}/escalate`, { body: { reason: 'too late now' } })
  expect([late.status, late.body.code]).toEqual([409, 'NOT_ALLOWED'])
})

test("a person's escalation is sent to all listeners", async () => {
  await api.put('/config/webhook.escalated.url', { body: { value: 'https://hooks.example.com/x' } })
  const id = await openedIncident(api.db)
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'needs new hardware' } })
  expect((await api.get(`/incidents/${id}/deliveries`)).body.items).toMatchObject([
    { destination: 'webhook.escalated', status: 'pending' },
  ])
})

test('a cancellation is sent to the run, which ends itself', async () => {
  const id = await claimedIncident(api.db)
  expect((await api.post(`/incidents/${id}/cancel`, { body: why })).body.status).toBe('investigating')
  expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({
    actor: 'user:admin',
    metadata: { text: why.reason, action: 'cancel_requested' },
  })
})

test('without a run a cancellation closes the incident at once', async () => {
  const open = await openedIncident(api.db)
  expect((await api.post(`/incidents/${open}/cancel`, { body: why })).body.status).toBe('cancelled')
  api.runs.answer = 'gone'
  const orphaned = await claimedIncident(api.db)
  expect((await api.post(`/incidents/${orphaned}/cancel`, { body: why })).body.status).toBe('cancelled')
  api.runs.answer = 'told'
})

test('a closed incident can be investigated again, and an incident with a run cannot', async () => {
  const id = await openedIncident(api.db)
  await api.post(`/incidents/${id}/cancel`, { body: why })
  const answer = await api.post(`/incidents/${id}/investigate`, { as: api.tokens.operator })
  expect([answer.status, answer.body.status]).toEqual([202, 'open'])
  expect((await api.post(`/incidents/${await claimedIncident(api.db)}/investigate`)).status).toBe(409)
})

test('the hash chain of an unchanged incident is valid, and a changed row is found', async () => {
  const id = await openedIncident(api.db)
  await api.post(`/incidents/${id}/events`, { body: { action: 'commented', detail: 'seen' } })
  const { headHash } = (await api.get(`/incidents/${id}/verify`)).body as unknown as { headHash: string }
  expect((await api.get(`/incidents/${id}/verify?head=${headHash}`)).body).toMatchObject({ ok: true, events: 2 })
  await sql`alter table incident_event disable trigger all`.execute(api.owner)
  await sql`update incident_event set detail = 'unseen' where incident_id = ${id} and seq = 2`.execute(api.owner)
  await sql`alter table incident_event enable trigger all`.execute(api.owner)
  expect((await api.get(`/incidents/${id}/verify`)).body).toMatchObject({ ok: false, problem: { seq: 2 } })
})

test('an incident is exported as JSON, as a table, and as a postmortem', async () => {
  const id = await openedIncident(api.db, { title: '=cmd|calc <script>' })
  await api.post(`/incidents/${id}/events`, { body: { action: 'commented', detail: '=1+1, "quoted"' } })
  await api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Cleaned up', outcome: 'repaired' } })
  const text = async (format: string) => String((await api.get(`/incidents/${id}/export?format=${format}`)).body.text)
  expect((await api.get(`/incidents/${id}/export`)).body).toMatchObject({ incident: { id }, alerts: [{}] })
  expect(await text('csv')).toContain(`"'=1+1, ""quoted"""`)
  const story = await text('md')
  for (const part of ['## Summary', '## Cause', 'Cleaned up', '## What was done', '## Open questions', '## Timeline']) {
    expect(story).toContain(part)
  }
  expect(story).not.toContain('<script>')
})

test('a person writes a section under their name, the log stays unchanged, and the second of two editors gets 409', async () => {
  const id = await openedIncident(api.db)
  const before = await eventsOf(api.db, id)
  const path = `/incidents/${id}/postmortem`
  const write = (version: number, cause: string | null, more: Asking = {}) =>
    api.post(path, { body: { version, sections: { cause } }, as: api.tokens.operator, ...more })
  const both = await Promise.all([write(0, 'Mine'), write(0, 'Mine too', { as: api.tokens.approver })])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
  const lost = both.find(({ status }) => status === 409)!
  expect(lost.body).toMatchObject({ code: 'VERSION_CHANGED', version: 1 })
  expect(String(lost.body.detail)).toMatch(/is at version 1, by (operator|approver), and you saw version 0/)
  const key = `once-${id}`
  const again = [await write(1, 'Better', { key }), await write(1, 'Better', { key })]
  expect(again.map(({ status, body }) => [status, body.version])).toEqual([
    [200, 2],
    [200, 2],
  ])
  type Found = { sections: { section: string; edited: { text: string; by: string } | null }[] }
  const cause = ((await api.get(path)).body as unknown as Found).sections.find(({ section }) => section === 'cause')
  expect(cause?.edited).toMatchObject({ text: 'Better', by: 'operator' })
  expect((await write(9, 'Ahead')).status).toBe(409)
  expect(await eventsOf(api.db, id)).toEqual(before)
  await api.post(path, { body: { version: 2, sections: { cause: null, followUp: 'More disks' } } })
  type Audited = { items: { subject: string; incidentId: string; who: string; detail: string }[] }
  const audited = ((await api.get('/audit?what=postmortem.edited')).body as unknown as Audited).items
  const own = audited.filter(({ subject, incidentId }) => subject === id && incidentId === id)
  expect(own.map(({ who, detail }) => `${who}: ${detail}`)).toEqual([
    'admin: Version 3: wrote What we change; restored the text from the log for Cause',
    'operator: Version 2: wrote Cause',
    expect.stringMatching(/^(operator|approver): Version 1: wrote Cause$/),
  ])
  expect((await api.get('/audit/verify')).body).toMatchObject({ ok: true })
  expect((await api.get(`/incidents/${id}/export?format=md`)).body.text).toContain('*Edited by admin at')
})

test('a viewer, an agent and an empty file write no postmortem, and a secret in one is removed', async () => {
  const path = `/incidents/${await openedIncident(api.db)}/postmortem`
  const body = { version: 0, sections: { cause: 'x' } }
  const status = async (as: string, sent: unknown = body) => (await api.post(path, { body: sent, as })).status
  expect([await status(api.tokens.viewer), await status(api.tokens.agent)]).toEqual([403, 403])
  for (const sections of [{}, { cause: ' ' }, { cause: 'x'.repeat(10_001) }, { couse: 'x' }])
    expect(await status(api.tokens.operator, { version: 0, sections })).toBe(422)
  const secret = `AKIA${'IOSFODNN7EXAMPLQ'}`
  await api.post(path, { body: { version: 0, sections: { cause: `key ${secret}` } }, as: api.tokens.operator })
  const kept = JSON.stringify((await api.get(path)).body)
  expect(kept).toContain('key ')
  expect(kept).not.toContain(secret)
  await expect(sql`update postmortem_edit set version = 7`.execute(api.owner)).rejects.toThrow('append-only')
})

test('the watchdog escalates an incident whose run is silent, and fences that run', async () => {
  const id = await claimedIncident(api.db)
  await moveClock(api.owner, '61 minutes')
  await runWatchdogRound(api.api.deps)
  await moveClock(api.owner, '0 minutes')
  expect(await incidentById(api.db, id)).toMatchObject({ status: 'escalated', attempt: 2, assignedTo: null })
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({ metadata: { code: 'WATCHDOG_SILENT' } })
})

test('the watchdog escalates an incident whose approval expired unnoticed', async () => {
  const id = await claimedIncident(api.db)
  await asked(api.db, id, { expirySeconds: 60 })
  await moveClock(api.owner, '4 minutes')
  await runWatchdogRound(api.api.deps)
  await moveClock(api.owner, '0 minutes')
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({ metadata: { code: 'WATCHDOG_UNEXPIRED' } })
})

test('the watchdog releases the members of a dead group and wakes the queue', async () => {
  const id = await openedIncident(api.db)
  await sql`update incident set group_id = 'grp_dead', queued_at = nightshift_now() - interval '4 minutes'
    where id = ${id}`.execute(api.owner)
  const before = api.triggered.length
  await runWatchdogRound(api.api.deps)
  expect(await incidentById(api.db, id)).toMatchObject({ groupId: null })
  expect(api.triggered.length).toBe(before + 1)
})
