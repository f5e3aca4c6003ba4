import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { ensureOperator } from '../../db/access/tokens.ts'
import { requestApproval } from '../../db/approvals/ask.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { lockIncident } from '../../db/incidents/incidents.ts'
import { handOver } from '../../db/incidents/owners.ts'
import { enqueueNotification } from '../../db/outbox/deliveries.ts'
import { putDestination, removeDestination } from '../../db/outbox/destination-rows.ts'
import { type DestinationPut, destinationPut } from '../../domain/destination.ts'
import { startDeliveries } from '../../worker/deliver.ts'
import { claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { answerJson, type LocalServer, startLocalServer } from '../support/local-server.ts'
import { readMail, startMailServer, type TestMailServer } from '../support/mail-server.ts'

const database = useDatabase()
let receiver: LocalServer
let mails: TestMailServer
let stops: (() => Promise<void>)[]
const user = { name: 'nightshift', password: 'correct horse battery' }

beforeAll(async () => {
  mails = await startMailServer({ tls: 'starttls', user })
})
afterAll(async () => await mails.close())
beforeEach(async () => {
  stops = []
  receiver = await startLocalServer()
  mails.taken.length = 0
  for (const table of ['delivery', 'platform_config', 'destination', 'outbox_address'])
    await sql`delete from ${sql.table(table)}`.execute(database.owner)
})
afterEach(async () => {
  for (const stop of stops) await stop()
  await receiver.close()
  await moveClock(database.owner, '0 seconds')
})

const start = () => {
  const site = { publicUrl: 'https://nightshift.example', pushServices: [] }
  const { stop } = startDeliveries(database.db, pino({ level: 'silent' }), site, {
    pollEveryMs: 30,
    remindEveryMs: 100,
    graceMs: 1_000,
  })
  stops.push(stop)
}

const put = (name: string, given: unknown) =>
  putDestination(database.db, name, destinationPut.parse(given) as DestinationPut, 'anna')

const pagerduty = (route = {}) =>
  put('on-call', {
    kind: 'pagerduty',
    options: { events: `${receiver.url}/v2/enqueue` },
    secrets: { integrationKey: 'R0123456789ABCDEF0123456789ABCDE' },
    route,
  })

const email = (route = {}) =>
  put('ops-mail', {
    kind: 'email',
    options: {
      ...{ host: '127.0.0.1', port: mails.port, user: user.name, ca: mails.ca },
      ...{ from: 'nightshift@example.com', to: ['ops@example.com'] },
    },
    secrets: { password: user.password },
    route,
  })

const closeAs = (id: string, closing: Parameters<typeof closeIncident>[3]) =>
  database.db
    .transaction()
    .execute((trx) => closeIncident(trx, id, null, closing, { actor: 'user:anna', stepKey: null }))

const ask = (incidentId: string) =>
  database.db.transaction().execute((trx) =>
    requestApproval(trx, {
      ...{ incidentId, attempt: 1, turn: 1, callId: 'c1_0', tool: 'execute_migration', args: { proposal_id: 'prp_1' } },
      ...{ targets: [], reason: 'host-osl-1 is dead', stateFingerprint: '', actionDigest: 'd', risk: 'high' },
      ...{ reversible: true, required: 1, replaces: null, actor: 'agent:incident-investigator', expirySeconds: 600 },
      ...{ stepKey: `${incidentId}:ask`, dryRun: { possible: true, summary: 'start 3 VMs', details: {} } },
    }),
  )

const events = () => receiver.seen.map(({ body }) => JSON.parse(body))
const rows = () =>
  database.db
    .selectFrom('delivery')
    .select(['destination', 'status', 'attempt', 'response', 'givenUpAt', 'messageId'])
    .orderBy('id')
    .execute()
const settled = () => eventually('all deliveries', async () => (await rows()).every(({ status }) => status === 'sent'))

test('an incident in PagerDuty opens, asks, is acknowledged by its owner, and is resolved, with one key', async () => {
  receiver.play(answerJson(202, { status: 'success', message: 'Event processed' }))
  await pagerduty()
  start()
  const id = await claimedIncident(database.db, { severity: 'critical', title: 'The disk is full' })
  const { id: approvalId } = await ask(id)
  await eventually('the question', () => receiver.seen.length === 2)
  const operatorId = await ensureOperator(database.db, 'anna', 'operator')
  const by = { operatorId, actor: 'user:anna', name: 'anna' }
  await database.db.transaction().execute((trx) => handOver(trx, id, null, by))
  await closeAs(id, { status: 'resolved', resolution: 'cleaned up', outcome: 'no_fault', claims: [], confidence: null })
  await eventually('the end', () => receiver.seen.length === 4)
  await settled()
  expect(events().map(({ event_action }) => event_action)).toEqual(['trigger', 'trigger', 'acknowledge', 'resolve'])
  expect(new Set(events().map(({ dedup_key }) => dedup_key))).toEqual(new Set([id]))
  expect(events()[0]).toMatchObject({ payload: { severity: 'critical', summary: 'Critical: The disk is full' } })
  expect(events()[1].links).toEqual([
    { href: `https://nightshift.example/approvals/${approvalId}`, text: 'Review request' },
  ])
})

test('an incident that PagerDuty never got is not ended there, and a cancellation ends one that it got', async () => {
  receiver.play(answerJson(202, {}))
  await pagerduty()
  const untold = await openedIncident(database.db, { severity: 'warning' })
  const told = await openedIncident(database.db, { severity: 'critical' })
  await closeAs(untold, { status: 'cancelled', reason: 'a test' })
  await closeAs(told, { status: 'cancelled', reason: 'a test' })
  start()
  await eventually('both', () => receiver.seen.length === 2)
  await settled()
  expect(events().map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
    ['trigger', told],
    ['resolve', told],
  ])
})

test('an end waits for its beginning, also while the beginning waits for another attempt', async () => {
  await pagerduty()
  receiver.play((response) => response.writeHead(receiver.seen.length === 1 ? 500 : 202).end())
  const id = await openedIncident(database.db, { severity: 'critical' })
  await closeAs(id, { status: 'cancelled', reason: 'a test' })
  // Messages due at the same address go on meanwhile.
  const other = await openedIncident(database.db, { severity: 'critical' })
  start()
  await eventually('the other one', () => receiver.seen.length === 2)
  await moveClock(database.owner, '6 seconds')
  await eventually('all', () => receiver.seen.length === 4)
  expect(events().map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
    ['trigger', id],
    ['trigger', other],
    ['trigger', id],
    ['resolve', id],
  ])
})

test('PagerDuty never gets several incidents in one event, however long it asked for a delay', async () => {
  await pagerduty()
  for (const _ of [1, 2, 3]) await openedIncident(database.db, { severity: 'critical' })
  receiver.play((response) => response.writeHead(429, { 'retry-after': '100' }).end())
  start()
  await eventually(
    'the first try',
    async () => (await rows()).every(({ status }) => status === 'pending') && receiver.seen.length === 1,
  )
  receiver.play(answerJson(202, {}))
  await moveClock(database.owner, '150 seconds')
  await eventually('all', () => receiver.seen.length === 4)
  await settled()
  expect(events().every(({ event_action }) => event_action === 'trigger')).toBe(true)
  expect(new Set(events().map(({ dedup_key }) => dedup_key)).size).toBe(3)
  expect((await rows()).every(({ attempt }) => attempt === 1)).toBe(true)
})

test('an incident by e-mail is one thread, with the card of its question and the report of its escalation', async () => {
  await email()
  start()
  const id = await claimedIncident(database.db, { severity: 'critical', title: 'The disk is full' })
  const { id: approvalId } = await ask(id)
  await eventually('the question', () => mails.taken.length === 2)
  await closeAs(id, { status: 'escalated', code: 'X', reason: 'the disk is full of tenant data' })
  await eventually('the escalation', () => mails.taken.length === 3)
  await settled()
  const read = mails.taken.map(readMail)
  expect(new Set(read.map(({ headers }) => headers.subject))).toEqual(new Set(['[Nightshift] The disk is full']))
  const [first, asked, escalated] = read.map(({ headers }) => headers)
  expect(first).toMatchObject({ 'message-id': `<${id}.ops-mail@example.com>` })
  expect(first).not.toHaveProperty('in-reply-to')
  for (const headers of [asked, escalated])
    expect([headers?.['in-reply-to'], headers?.references]).toEqual([first?.['message-id'], first?.['message-id']])
  expect(read[1]?.text).toContain(`https://nightshift.example/approvals/${approvalId}`)
  expect(read[2]?.text).toContain('the disk is full of tenant data')
  expect(mails.taken.every(({ isSecure, user: name }) => isSecure && name === user.name)).toBe(true)
})

test('a mail server with a temporary refusal is asked again later, with the same message, and after a permanent refusal another channel delivers', async () => {
  await email()
  await put('other', { kind: 'webhook', secrets: { url: `${receiver.url}/other` }, route: { types: ['nothing'] } })
  mails.refuse({ code: 451, words: 'greylisted' })
  const id = await openedIncident(database.db, { severity: 'critical' })
  start()
  await eventually('the first try', async () => (await waitsAt('to.ops-mail')) !== null)
  mails.refuse({ code: 554, words: 'no' })
  await moveClock(database.owner, '61 seconds')
  await eventually('the other way', () => receiver.seen.length === 1)
  mails.refuse(null)
  expect(JSON.parse(receiver.seen[0]?.body ?? '')).toMatchObject({
    type: 'incident.undelivered',
    data: { incidents: [{ id }] },
  })
  const [mail] = await rows()
  expect(mail).toMatchObject({ status: 'dropped', attempt: 1, givenUpAt: expect.any(String) })
  expect(mail?.response).toContain('the mail server answered 554')
})

/** Until when its address is left alone; null: it is not. */
async function waitsAt(destination: string): Promise<string | null> {
  const row = await database.db
    .selectFrom('outboxAddress')
    .innerJoin('delivery', (join) => join.onTrue())
    .select('readyAt')
    .where('delivery.destination', '=', destination)
    .where('delivery.status', '=', 'pending')
    .where(sql<boolean>`ready_at > nightshift_now() + interval '50 seconds'`)
    .executeTakeFirst()
  return row ? String(row.readyAt) : null
}

test('Teams gets a card with a link', async () => {
  await put('channel', { kind: 'teams', secrets: { url: `${receiver.url}/workflows/abc/triggers/manual?sig=SECRET` } })
  receiver.play((response) => response.writeHead(202).end())
  const id = await openedIncident(database.db, { severity: 'critical' })
  start()
  await eventually('the card', () => receiver.seen.length === 1)
  expect(events()[0].attachments[0].content.actions).toEqual([
    { type: 'Action.OpenUrl', title: 'Open incident', url: `https://nightshift.example/incidents/${id}` },
  ])
  await settled()
})

test('messages for a removed or disabled destination are dropped, and nobody is told of them as given up', async () => {
  await pagerduty()
  await email()
  await openedIncident(database.db, { severity: 'critical' })
  await removeDestination(database.db, 'on-call', 'anna')
  await email({})
  await sql`update destination set enabled = false`.execute(database.owner)
  start()
  await eventually('both', async () => (await rows()).every(({ status }) => status === 'dropped'))
  expect((await rows()).map(({ response, givenUpAt }) => [response, givenUpAt])).toEqual([
    ['the destination is no longer configured', null],
    ['the destination is no longer configured', null],
  ])
  expect([receiver.seen.length, mails.taken.length]).toEqual([0, 0])
})

test('an unreadable destination stops no other, is given up, and another channel delivers', async () => {
  await pagerduty()
  receiver.play(answerJson(202, {}))
  await sql`
    insert into destination (name, kind, options, secrets, route, enabled, created_by)
    values ('by-hand', 'email', '{}', '{}', '{"severities":null,"types":null,"triggers":null,"hours":null}', true, 'sql')`.execute(
    database.owner,
  )
  await openedIncident(database.db, { severity: 'critical' })
  start()
  await eventually('the page and what was given up', () => receiver.seen.length === 2)
  expect(events()[1].payload.summary).toBe('Messages that reached nobody: 1 incident')
  const [byHand] = (await rows()).filter(({ destination }) => destination === 'to.by-hand')
  expect(byHand).toMatchObject({
    status: 'dropped',
    response: 'the settings of the destination cannot be read: set it again',
  })
})

test('routes decide which messages are sent: by severity, type and hour', async () => {
  const hour =
    (
      await sql<{ at: string }>`select to_char(nightshift_now() at time zone 'UTC', 'HH24') as at`.execute(
        database.owner,
      )
    ).rows[0]?.at ?? '00'
  const shifted = (by: number) => `${String((Number(hour) + by + 24) % 24).padStart(2, '0')}:00`
  const teams = (name: string, route: object) =>
    put(name, { kind: 'teams', secrets: { url: `${receiver.url}/${name}` }, route })
  await teams('now', { hours: { from: shifted(-1), to: shifted(2), zone: 'UTC' } })
  await teams('later', { hours: { from: shifted(3), to: shifted(-2), zone: 'UTC' } })
  await teams('warnings', { severities: ['warning'] })
  await teams('disks', { types: ['disk_*'] })
  await teams('lags', { types: ['*_lag'] })
  await openedIncident(database.db, { severity: 'critical' })
  expect((await rows()).map(({ destination }) => destination)).toEqual(['to.disks', 'to.now'])
})

test('webhook.escalated gets escalations, and news has its own address', async () => {
  const configured = async (key: string) =>
    void (await sql`insert into platform_config (key, value) values (${`${key}.url`}, ${`${receiver.url}/${key}`})`.execute(
      database.owner,
    ))
  const tell = (triggers: readonly Parameters<typeof enqueueNotification>[2][], id: string) =>
    database.db.transaction().execute(async (trx) => {
      const row = await lockIncident(trx, id)
      for (const trigger of triggers) if (row) await enqueueNotification(trx, row, trigger, 'why')
    })
  const told = async () => (await rows()).map(({ destination }) => destination)
  const id = await openedIncident(database.db, { severity: 'warning' })
  await configured('webhook.escalated')
  await tell(['quiet', 'watch', 'reopened'], id)
  expect(await told()).toEqual([])
  await tell(['escalated', 'reminder', 'owner', 'digest'], id)
  expect(await told()).toEqual(Array(4).fill('webhook.escalated'))
  await sql`delete from delivery`.execute(database.owner)
  await configured('webhook.news')
  await tell(['quiet', 'watch', 'reopened', 'digest', 'escalated'], id)
  expect(await told()).toEqual([...Array(4).fill('webhook.news'), 'webhook.escalated'])
})
