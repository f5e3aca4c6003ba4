import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { passOnPending } from '../../../db/approvals/pass-on.ts'
import { remindPending } from '../../../db/approvals/reminders.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { reportOf } from '../../../db/incidents/reports.ts'
import { sendHandOver, sendMorning } from '../../../db/outbox/shift-cards.ts'
import { systemScope } from '../../../db/scope.ts'
import { agentActor, systemActor } from '../../../domain/event.ts'
import { type Notification, readStored } from '../../../domain/notification.ts'
import { asked } from '../../support/announced.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'
import { alertEnds, claims, configured, ends, opens, setClock, standClock, verifies, writes } from './held-page.ts'

/** It is 03:10 UTC; the night is over at 07:00, 13,800 seconds later. */
const morning = 3 * 3_600 + 50 * 60
const database = useDatabase()
const at = (seconds: number) => setClock(database, seconds)
const inTrx = <T>(
  act: (trx: Parameters<Parameters<ReturnType<typeof database.db.transaction>['execute']>[0]>[0]) => Promise<T>,
) => database.db.transaction().execute(act)

beforeAll(() => standClock(database))
beforeEach(async () => {
  await sql`delete from delivery; delete from digest; delete from question_wake; delete from lost_duty; delete from destination`.execute(
    database.owner,
  )
  await sql`update approval set status = 'withdrawn', decided_at = now() where status = 'pending'`.execute(
    database.owner,
  )
  await sql`update incident set status = 'cancelled', assigned_to = null, outcome = null, category = null, watch_until = null, closed_at = '2099-11-01'`.execute(
    database.owner,
  )
  await budget()
  await at(0)
})

const budget = (more: Record<string, string> = {}) =>
  configured(database, {
    'webhook.approval.url': 'http://127.0.0.1:9/phone',
    'webhook.escalated.url': 'http://127.0.0.1:9/phone',
    'webhook.news.url': 'http://127.0.0.1:9/news',
    'page.wake_budget': '1',
    ...more,
  })

const destination = async (name: string, kind: string, options: object = {}, route: object = {}) =>
  void (await sql`insert into destination (name, kind, options, secrets, route, enabled, created_by)
    values (${name}, ${kind}, ${JSON.stringify(options)}, '{}', ${JSON.stringify(route)}, true, 'anna')`.execute(
    database.owner,
  ))

async function question(more: { severity?: 'critical' | 'warning'; expirySeconds?: number } = {}) {
  const incidentId = await claimedIncident(database.db)
  await sql`update incident set severity = ${more.severity ?? 'warning'} where id = ${incidentId}`.execute(
    database.owner,
  )
  return { incidentId, id: await asked(database.db, incidentId, { expirySeconds: more.expirySeconds ?? 86_000 }) }
}

type Told = { destination: string; trigger: string; page: boolean }

async function toldOf(incidentId: string): Promise<Told[]> {
  const { rows } =
    await sql<Told>`select destination, notification->>'trigger' as trigger, (notification->>'page')::boolean as page
    from delivery where incident_id = ${incidentId} order by id`.execute(database.owner)
  return rows
}

async function cards(trigger: 'morning' | 'hand_over'): Promise<Notification[]> {
  const { rows } = await sql<{ notification: unknown; incidentId: string }>`
    select notification, incident_id as "incidentId" from delivery where notification->>'trigger' = ${trigger} order by id`.execute(
    database.owner,
  )
  return rows.flatMap(
    ({ notification, incidentId }) => readStored(notification, incidentId, { publicUrl: 'https://n' }) ?? [],
  )
}

const linesOf = (card: Notification | undefined) => card?.lines.map(({ text }) => text) ?? []

describe('a budget of one', () => {
  test('the first question of a night wakes a person, and the others do not', async () => {
    const [first, second] = [await question(), await question()]
    expect(await toldOf(first.incidentId)).toEqual([
      { destination: 'webhook.approval', trigger: 'approval', page: true },
    ])
    expect(await toldOf(second.incidentId)).toEqual([])
    const { rows } = await sql<{ detail: string }>`select detail from incident_event
      where incident_id = ${second.incidentId} and metadata->>'code' = 'wake_held'`.execute(database.owner)
    expect(rows[0]?.detail).toMatch(
      /^Wakes nobody: 1 of 1 approvals have woken somebody this night\. The approval waits for the morning card, and expires at 03:03 UTC/,
    )
  })

  test('a report counts a question that woke nobody as an avoided wake', async () => {
    const day = { since: '2099-11-29', until: '2099-11-29' }
    const before = (await reportOf(systemScope(database.db), day)).total
    await question()
    await question()
    const { questionsHeld, wakesAvoided } = (await reportOf(systemScope(database.db), day)).total
    expect([questionsHeld - before.questionsHeld, wakesAvoided - before.wakesAvoided]).toEqual([1, 1])
  })

  test('of many questions at once as many wake as the budget allows', async () => {
    await budget({ 'page.wake_budget': '2' })
    const made = await Promise.all(Array.from({ length: 8 }, () => question()))
    const told = (await Promise.all(made.map(({ incidentId }) => toldOf(incidentId)))).flat()
    expect(told.filter(({ page }) => page)).toHaveLength(2)
  })

  test('a question about a critical incident always wakes, and does not use the budget', async () => {
    await question()
    const critical = await question({ severity: 'critical' })
    expect(await toldOf(critical.incidentId)).toContainEqual(
      expect.objectContaining({ trigger: 'approval', page: true }),
    )
    const { rows } = await sql`select from question_wake`.execute(database.owner)
    expect(rows).toHaveLength(1)
  })

  test('channels get it at once without a mention, and PagerDuty and waking destinations do not get it', async () => {
    await destination('phone', 'pagerduty')
    await destination('team', 'teams')
    await destination('ring', 'email', {}, { wakes: true })
    await destination('lamp', 'webhook', { template: 'generic' }, { wakes: false })
    await question()
    const { incidentId } = await question()
    const told = await toldOf(incidentId)
    expect(told.map(({ destination, page }) => [destination, page])).toEqual([
      ['to.lamp', false],
      ['to.team', false],
    ])
    const { rows } = await sql<{ notification: Notification }>`select notification from delivery
      where incident_id = ${incidentId} limit 1`.execute(database.owner)
    expect(rows[0]?.notification.approval?.sections?.at(-1)).toMatchObject({ title: 'Until the morning' })
  })

  test('its reminders wake nobody, it is passed to no further person, and its expiry also waits', async () => {
    await question()
    const { incidentId, id } = await question({ expirySeconds: 1_000 })
    await at(950)
    await remindPending(database.db)
    expect(await toldOf(incidentId)).toEqual([])
    expect(await passOnPending(database.db)).toBe(0)
    await at(1_001)
    await sql`update approval set status = 'expired', decided_at = now() where id = ${id}`.execute(database.owner)
    const expired = { status: 'escalated', reason: 'nobody decided', code: 'APPROVAL_EXPIRED' } as const
    await inTrx((trx) => closeIncident(trx, incidentId, null, expired, { actor: agentActor, stepKey: null }))
    expect(await toldOf(incidentId)).toEqual([])
    await at(morning)
    await sendMorning(database.db)
    expect(linesOf((await cards('morning'))[0])).toEqual([
      expect.stringMatching(/^Waits for you/),
      expect.stringMatching(/^Question, expired: /),
      expect.stringMatching(/^Escalated: /),
    ])
  })

  test('an escalation without such a question wakes as before', async () => {
    const incidentId = await claimedIncident(database.db)
    await sql`update incident set severity = 'warning' where id = ${incidentId}`.execute(database.owner)
    const failed = { status: 'escalated', reason: 'the model is away', code: 'MODEL_UNAVAILABLE' } as const
    await inTrx((trx) => closeIncident(trx, incidentId, null, failed, { actor: systemActor, stepKey: null }))
    expect(await toldOf(incidentId)).toMatchObject([{ trigger: 'escalated', page: true }])
  })

  test('in the morning its reminder wakes like any other', async () => {
    await question()
    const { incidentId } = await question({ expirySeconds: 2 * morning })
    await at(morning + 1)
    await remindPending(database.db)
    expect(await toldOf(incidentId)).toMatchObject([{ trigger: 'approval', page: true }])
  })

  test.each([
    ['by day', { 'page.night': '22:00-02:00 UTC' }],
    ['without a budget', { 'page.wake_budget': 'off' }],
    ['while no card goes out', { 'morning.card': 'off' }],
  ])('%s every question wakes', async (_name, settings) => {
    await budget(settings)
    for (const { incidentId } of [await question(), await question()])
      expect(await toldOf(incidentId)).toMatchObject([{ trigger: 'approval', page: true }])
  })

  test('no question waits for a card that nobody would get', async () => {
    await configured(database, { 'page.wake_budget': '0' })
    await destination('phone', 'pagerduty')
    expect(await toldOf((await question()).incidentId)).toMatchObject([{ destination: 'to.phone', page: true }])
  })
})

describe('the morning card', () => {
  test('lists what waits, with a link each, and is sent once, also from two processes', async () => {
    await question()
    const { id } = await question()
    await at(morning - 1)
    expect(await sendMorning(database.db)).toBe(0)
    await at(morning)
    const sent = await Promise.all([sendMorning(database.db), sendMorning(database.db)])
    expect(sent.filter(Boolean)).toEqual([2])
    expect(await sendMorning(database.db)).toBe(0)
    const [card, ...more] = await cards('morning')
    expect(more).toEqual([])
    expect(card).toMatchObject({
      page: false,
      incident: { title: 'Morning of 2099-11-29: 2 questions wait' },
      url: 'https://n/shift',
    })
    // Questions that woke nobody stand first.
    expect(card?.lines[0]).toMatchObject({ url: `https://n/approvals/${id}` })
  })

  test('lists repairs, escalations, and pages that were not needed, which Reports counts', async () => {
    await budget({ 'webhook.critical.url': 'http://127.0.0.1:9/critical', 'page.hold': '300' })
    const spared = await opens(database.db, 0)
    await inTrx((trx) => claims(trx, spared))
    await inTrx((trx) => writes(trx, spared))
    await inTrx((trx) => verifies(trx, spared, 'held'))
    await inTrx((trx) => ends(trx, spared, 'repaired'))
    await at(37)
    await alertEnds(database.db, spared, 37)
    const handed = await opens(database.db, 40, { name: 'other', labels: { alertname: 'other' } })
    await inTrx((trx) => claims(trx, handed))
    await inTrx((trx) => ends(trx, handed, 'escalated'))
    await at(morning)
    await sendMorning(database.db)
    const [card] = await cards('morning')
    expect(card?.incident.title).toBe('Morning of 2099-11-29: 1 escalated, 1 repaired, 1 page not sent')
    expect(linesOf(card)).toEqual([
      expect.stringMatching(/^Escalated: /),
      expect.stringMatching(/^No page: repaired in 37 s, alert ended: /),
      expect.stringMatching(/^Repaired: /),
    ])
    await at(morning + 24 * 3_600)
    expect(await sendMorning(database.db)).toBe(0)
  })

  test('is not sent after an empty night, or is one line if the site wants it', async () => {
    await claimedIncident(database.db)
    await sql`update incident set status = 'cancelled', assigned_to = null, closed_at = '2099-11-01' where status = 'investigating'`.execute(
      database.owner,
    )
    await at(morning)
    expect(await sendMorning(database.db)).toBe(0)
    await sql`delete from digest`.execute(database.owner)
    await budget({ 'morning.card': 'always' })
    expect(await sendMorning(database.db)).toBe(1)
    expect((await cards('morning'))[0]?.incident.title).toBe('Morning of 2099-11-29: a quiet night')
  })

  test('is not sent if it is six hours late', async () => {
    await question()
    await at(morning + 6 * 3_600 + 1)
    expect(await sendMorning(database.db)).toBe(0)
  })

  test('fits a phone after a storm: three lines of a kind, and the number of the others', async () => {
    for (let each = 0; each < 22; each++) await question()
    await at(morning)
    await sendMorning(database.db)
    const [card] = await cards('morning')
    expect(card?.incident.title).toBe('Morning of 2099-11-29: 20 or more questions wait')
    const lines = linesOf(card)
    expect(lines).toHaveLength(4)
    expect(lines.at(-1)).toBe('and 19 more')
  })
})

describe('questions that woke nobody', () => {
  const heldOne = async () => {
    await budget({ 'page.wake_budget': '0' })
    return await question({ expirySeconds: 1_000 })
  }

  test.each<[string, Record<string, string>]>([
    ['no card is wanted any more', { 'morning.card': 'off' }],
    [
      'no way out takes the card any more',
      { 'webhook.news.url': '', 'webhook.approval.url': '', 'webhook.escalated.url': '' },
    ],
  ])('wake people at the end of the night if %s, once, and do not count as avoided wakes', async (_name, settings) => {
    const day = { since: '2099-11-29', until: '2099-11-30' }
    const before = (await reportOf(systemScope(database.db), day)).total
    const { incidentId } = await heldOne()
    await budget({ 'webhook.critical.url': 'http://127.0.0.1:9/phone', ...settings })
    await at(morning - 1)
    expect(await sendMorning(database.db)).toBe(0)
    await at(morning)
    const sent = await Promise.all([sendMorning(database.db), sendMorning(database.db)])
    expect(sent.filter(Boolean)).toEqual([1])
    expect(await toldOf(incidentId)).toMatchObject([{ trigger: 'undelivered', page: true }])
    const { questionsHeld, wakesAvoided } = (await reportOf(systemScope(database.db), day)).total
    expect([questionsHeld - before.questionsHeld, wakesAvoided - before.wakesAvoided]).toEqual([1, 0])
  })

  test('do not count as having woken a person whom no channel could wake at the end of the night', async () => {
    const { incidentId } = await heldOne()
    const none = ['critical', 'escalated', 'approval', 'resolved', 'news'].map((each) => [`webhook.${each}.url`, ''])
    await budget({ 'morning.card': 'off', ...Object.fromEntries(none) })
    await at(morning)
    await sendMorning(database.db)
    expect(await toldOf(incidentId)).toEqual([])
    const { rows } = await sql<{ detail: string }>`select detail from incident_event
      where incident_id = ${incidentId} and metadata->>'code' = 'wake_late'`.execute(database.owner)
    expect(rows).toEqual([
      { detail: expect.stringMatching(/no destination was left to wake people as the night ended\.$/) },
    ])
  })

  test('are on a late card, however late it is', async () => {
    await heldOne()
    await at(morning + 9 * 3_600)
    expect(await sendMorning(database.db)).toBe(1)
    expect(linesOf((await cards('morning'))[0])).toEqual([expect.stringMatching(/^Question, expired: /)])
  })

  test('are on the next card if their night was changed, or nothing ran that day', async () => {
    await heldOne()
    await budget({ 'page.night': '04:00-07:00 UTC' })
    await at(morning + 24 * 3_600)
    await sendMorning(database.db)
    expect(linesOf((await cards('morning'))[0])).toContainEqual(expect.stringMatching(/^Question, expired: /))
  })
})

describe('the hand-over', () => {
  test('shows in five lines what is open, waits, is watched and lost, and what comes first', async () => {
    await budget({ 'hand_over.at': '03:00 15:00 UTC' })
    const { id } = await question({ severity: 'critical' })
    await sql`insert into lost_duty (name, since, seen_at) values ('pages', nightshift_now(), nightshift_now())`.execute(
      database.owner,
    )
    await at(1)
    expect(await sendHandOver(database.db)).toBe(5)
    expect(await sendHandOver(database.db)).toBe(0)
    const [card] = await cards('hand_over')
    expect(card?.incident.title).toBe('Hand-over of 2099-11-29, 03:00 UTC')
    expect(linesOf(card)).toEqual([
      expect.stringMatching(/^Open: 1 incident \(1 critical\): /),
      expect.stringMatching(/^Waits: .* until /),
      'Watched: nothing',
      'Nightshift: failed parts: pages',
      'Look first at: pages, a failed part of Nightshift',
    ])
    expect(card?.lines[1]?.url).toBe(`https://n/approvals/${id}`)
  })

  test('has all five lines if there is nothing to show', async () => {
    await budget({ 'hand_over.at': '03:00 UTC' })
    await sendHandOver(database.db)
    expect(linesOf((await cards('hand_over'))[0])).toEqual([
      'Open: nothing',
      'Waits: nothing',
      'Watched: nothing',
      'Nightshift: no part has failed',
      'Look first at: nothing waits',
    ])
  })

  test('is not sent if no time is set', async () => {
    await question()
    expect(await sendHandOver(database.db)).toBe(0)
  })
})
