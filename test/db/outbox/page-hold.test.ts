import { beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { briefSources } from '../../../db/incidents/brief.ts'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { reportOf } from '../../../db/incidents/reports.ts'
import { findIdleQueues } from '../../../db/outbox/idle-queues.ts'
import { tellLostDuties } from '../../../db/outbox/lost-duties.ts'
import { systemScope } from '../../../db/scope.ts'
import { foldBrief } from '../../../domain/brief.ts'
import type { Incident } from '../../../domain/incident.ts'
import { asked } from '../../support/announced.ts'
import { useDatabase } from '../../support/database.ts'
import {
  alertEnds,
  claims,
  configured,
  deliverRound,
  ends,
  gateNotes,
  type HeldIncident,
  modelFails,
  opens,
  pagesOf,
  setClock,
  standClock,
  verifies,
  writes,
} from './held-page.ts'

const database = useDatabase()
const inTrx = <T>(
  act: (trx: Parameters<Parameters<ReturnType<typeof database.db.transaction>['execute']>[0]>[0]) => Promise<T>,
) => database.db.transaction().execute(act)
const at = (seconds: number) => setClock(database, seconds)
const round = () => deliverRound(database.db)

beforeAll(() => standClock(database))
beforeEach(async () => {
  await sql`delete from delivery`.execute(database.owner)
  await sql`delete from lost_duty`.execute(database.owner)
  await sql`delete from outbox_address`.execute(database.owner)
  await configured(database, {
    'webhook.critical.url': 'http://127.0.0.1:9/critical',
    'webhook.escalated.url': 'http://127.0.0.1:9/escalated',
    'page.hold': '300',
  })
  await at(0)
})

async function atWork(): Promise<HeldIncident> {
  const incident = await opens(database.db, 0)
  await inTrx((trx) => claims(trx, incident))
  return incident
}

test('a held page waits its time while a run is at work, and is then sent by itself', async () => {
  const incident = await atWork()
  await at(299)
  await round()
  expect(await pagesOf(database.db, incident)).toMatchObject([{ status: 'pending', heldFor: 300, page: true }])
  await at(300)
  await round()
  expect(await pagesOf(database.db, incident)).toMatchObject([{ status: 'sent', leftAfter: 300, why: 'time' }])
  expect(await gateNotes(database.db, incident)).toEqual([
    'Page held until 03:15:00 UTC',
    'Page released: the hold time is over',
  ])
})

test('a page is not needed if its repair held and its alert ended while it waited, and the row says so', async () => {
  const incident = await atWork()
  await at(20)
  await inTrx((trx) => writes(trx, incident))
  await inTrx((trx) => verifies(trx, incident, 'held'))
  await at(30)
  await inTrx((trx) => ends(trx, incident, 'repaired'))
  await round()
  expect(await pagesOf(database.db, incident)).toMatchObject([{ status: 'pending' }])
  await at(37)
  await alertEnds(database.db, incident, 37)
  await at(400)
  await round()
  const said = 'No page: repaired in 37 s, alert ended'
  expect(await pagesOf(database.db, incident)).toMatchObject([{ status: 'dropped', why: 'repaired', response: said }])
  expect(await gateNotes(database.db, incident)).toEqual(['Page held until 03:15:00 UTC', said])
})

test.each([
  ['Page released: approval needed', (incident: HeldIncident) => asked(database.db, incident.id)],
  ['Page released: escalated', (incident: HeldIncident) => inTrx((trx) => ends(trx, incident, 'escalated'))],
  ['Page released: the model does not answer', (incident: HeldIncident) => inTrx((trx) => modelFails(trx, incident))],
  [
    'Page released: the run ended without a verified repair',
    (incident: HeldIncident) => inTrx((trx) => ends(trx, incident, 'no_fault', 'user:anna')),
  ],
  [
    'Page released: a part of Nightshift fails',
    () => tellLostDuties(database.db, [{ name: 'Temporal', status: 'failed', detail: 'It is away.', remedy: null }]),
  ],
])('%s: the page is sent at once', async (said, happen) => {
  const incident = await atWork()
  await at(12)
  await happen(incident)
  await round()
  expect(await pagesOf(database.db, incident)).toMatchObject([{ status: 'sent', leftAfter: 12 }])
  expect((await gateNotes(database.db, incident)).at(-1)).toBe(said)
})

test('an incident that no run takes within a minute pages, and the page of one that was taken keeps waiting', async () => {
  const waiting = await opens(database.db, 0)
  const working = await atWork()
  await at(59)
  await round()
  expect(await pagesOf(database.db, waiting)).toMatchObject([{ status: 'pending' }])
  await at(60)
  await round()
  expect(await pagesOf(database.db, waiting)).toMatchObject([{ status: 'sent', leftAfter: 60, why: 'no_slot' }])
  expect(await pagesOf(database.db, working)).toMatchObject([{ status: 'pending' }])
})

test('messages that wake nobody are sent at once, and mention the held page', async () => {
  await configured(database, {
    'webhook.critical.url': 'http://127.0.0.1:9/critical',
    'webhook.critical.template': 'slack',
    'page.hold': '300',
  })
  await sql`
    insert into destination (name, kind, options, secrets, route, enabled, created_by)
    values ('pager', 'pagerduty', '{"events":"us"}', '{"integrationKey":"00000000000000000000000000000000"}',
      '{"severities":null,"types":null,"triggers":null,"hours":null}', true, 'anna')`.execute(database.owner)
  try {
    const incident = await opens(database.db, 0)
    await round()
    expect(await pagesOf(database.db, incident)).toMatchObject([
      { status: 'pending', page: true, heldFor: 300 },
      { status: 'sent', page: false, leftAfter: 0 },
    ])
  } finally {
    await sql`delete from destination`.execute(database.owner)
  }
})

test('no process holds a page longer, or again', async () => {
  const { id } = await atWork()
  const change = (set: string) =>
    sql`update delivery set ${sql.raw(set)} where incident_id = ${id}`.execute(database.owner)
  await expect(change(`hold_until = hold_until + interval '1 second'`)).rejects.toThrow('a hold is written once')
  await expect(change(`hold_until = null`)).rejects.toThrow('a hold is written once')
  await expect(change(`next_at = next_at + interval '1 second'`)).rejects.toThrow('released earlier, never later')
  await change(`next_at = next_at - interval '100 seconds'`)
  await expect(change(`next_at = hold_until`)).rejects.toThrow('released earlier, never later')
  await expect(
    sql`insert into delivery (message_id, destination, incident_id, notification, attempt, hold_until, next_at)
      values ('msg_x', 'webhook.critical', ${id}, '{}', 1, nightshift_now() + interval '302 seconds', nightshift_now())`.execute(
      database.owner,
    ),
  ).rejects.toThrow('delivery_hold_is_short')
})

test('the page of an incident that nobody investigates does not wait, and neither does any page while the agent is paused or a duty is lost', async () => {
  await sql`insert into lost_duty (name, since, seen_at) values ('model', nightshift_now(), nightshift_now())`.execute(
    database.owner,
  )
  const withoutDuty = await opens(database.db, 0)
  await sql`delete from lost_duty`.execute(database.owner)
  await sql`insert into platform_config (key, value) values ('agent.investigate', 'none')`.execute(database.owner)
  const kept = await opens(database.db, 0)
  await sql`update platform_config set key = 'agent.paused', value = 'true' where key = 'agent.investigate'`.execute(
    database.owner,
  )
  const paused = await opens(database.db, 0)
  await round()
  for (const incident of [withoutDuty, kept, paused])
    expect(await pagesOf(database.db, incident)).toMatchObject([{ status: 'sent', heldFor: null, leftAfter: 0 }])
})

test('an alert that fires again after its page was not needed reopens the incident, and pages at once', async () => {
  const incident = await atWork()
  await inTrx((trx) => writes(trx, incident))
  await inTrx((trx) => verifies(trx, incident, 'held'))
  await inTrx((trx) => ends(trx, incident, 'repaired'))
  await at(30)
  await alertEnds(database.db, incident, 30)
  await at(60)
  await opens(database.db, 60, { fingerprint: incident.fingerprint })
  await round()
  const told = await database.db
    .selectFrom('delivery')
    .select(['status'])
    .select(sql<string>`notification->>'trigger'`.as('trigger'))
    .select(sql<boolean>`(notification->>'page')::boolean`.as('page'))
    .where('incidentId', '=', incident.id)
    .orderBy('id')
    .execute()
  expect(told).toEqual([
    { trigger: 'critical', status: 'dropped', page: true },
    { trigger: 'reopened', status: 'sent', page: true },
  ])
})

test('an incident page, a report and health show the held pages', async () => {
  const spared = await atWork()
  await inTrx((trx) => writes(trx, spared))
  await inTrx((trx) => verifies(trx, spared, 'held'))
  await inTrx((trx) => ends(trx, spared, 'repaired'))
  await at(37)
  await alertEnds(database.db, spared, 37)
  await at(40)
  const held = await opens(database.db, 40, { name: 'other', labels: { alertname: 'other' } })
  const scope = systemScope(database.db)
  const briefOf = async ({ id }: HeldIncident) =>
    foldBrief(await briefSources(scope, (await incidentById(database.db, id)) as Incident)).page
  expect((await briefOf(spared))?.text).toBe('No page: repaired in 37 s, alert ended')
  expect((await briefOf(held))?.text).toBe('Page held until 03:15:40 UTC')
  const report = await reportOf(scope, { since: '2099-11-29', until: '2099-11-29' }, { type: 'other' })
  expect(report).toMatchObject({ total: { pagesHeld: 1, wakesAvoided: 0 }, spared: [] })
  const whole = await reportOf(scope, { since: '2099-11-29', until: '2099-11-29' })
  const avoided = { incidentId: spared.id, text: 'No page: repaired in 37 s, alert ended' }
  expect(whole.spared).toContainEqual(expect.objectContaining(avoided))
  // No worker runs: the page is due after a minute, for nobody took the incident up, and at its
  // time in any case.
  await at(399)
  expect(await findIdleQueues(database.db)).toBeNull()
  await at(401)
  expect(await findIdleQueues(database.db)).toMatchObject({ messages: 1, pages: 1 })
})
