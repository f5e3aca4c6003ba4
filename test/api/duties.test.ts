import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { lostDuties } from '../../api/heartbeat.ts'
import { type PartFacts, partsOf } from '../../api/parts.ts'
import { tellLostDuties } from '../../db/outbox/lost-duties.ts'
import { type DutyName, duties } from '../../domain/duty.ts'
import { openedIncident, storeSetting, useDatabase } from '../support/database.ts'

type Schedule = NonNullable<NonNullable<PartFacts['queue']>['schedule']>
const schedule: Schedule = {
  paused: false,
  note: null,
  everySeconds: 60,
  lastAt: new Date().toISOString(),
  nextAt: new Date().toISOString(),
}
const queue = { schedule, workers: ['worker-1'], missingAttributes: [] }
const spent = { dollars: 1, cap: 10 }

/** All is well. */
const well: PartFacts = {
  trouble: null,
  isReachable: true,
  queue,
  neglected: null,
  platform: { stale: false },
  model: {
    last: { model: 'm', at: new Date().toISOString(), durationMs: 1 },
    lastHour: { answers: 9, failures: 0 },
    lastFailure: null,
  },
  knowledge: { items: [], places: [], refused: [] } as unknown as PartFacts['knowledge'],
  waiting: { bodies: 0, alerts: 0, oldestSeconds: 0, idleSeconds: 0 },
  refused: [],
  givenUp: [],
  untold: 0,
  idle: null,
  spend: { day: spent, month: spent },
  retentionLateSince: null,
  restored: null,
  onCall: { isEmpty: false, useless: [] },
  idleBudget: null,
  unconfirmed: [],
  stops: [],
  devices: [],
  sitePolicy: { inForce: null, waiting: null, reading: null, silences: null },
}

const failing = (detail: string): Partial<PartFacts> => ({
  model: { last: null, lastHour: { answers: 1, failures: 2 }, lastFailure: { detail, at: new Date().toISOString() } },
})
const scheduled = (change: Partial<Schedule>): Partial<PartFacts> => ({
  queue: { ...queue, schedule: { ...schedule, ...change } },
})
const long = '2026-01-01T00:00:00Z'

/** Ways in which a duty is lost, each as the looks find it. */
const losses: [duty: DutyName, way: string, found: Partial<PartFacts>][] = [
  [
    'database',
    'it takes no writes',
    { trouble: { what: 'The database accepts no writes.', remedy: 'ALTER DATABASE' } },
  ],
  ['database', 'it is a replica', { trouble: { what: 'It is a replica.', remedy: 'pg_promote' } }],
  ['database', 'its disk is full', { trouble: { what: 'Its disk is full.', remedy: 'SHOW data_directory' } }],
  ['database', 'its clock is another', { trouble: { what: 'Its clock is 90 s ahead.', remedy: 'timedatectl' } }],
  ['database', 'its connections are used up', { trouble: { what: '95 of 100 are taken.', remedy: 'ALTER SYSTEM' } }],
  ['Temporal', 'it is not reached', { isReachable: false }],
  ['Temporal', 'it answers nothing about the queue either', { isReachable: false, queue: null }],
  ['worker', 'no worker runs', { queue: { ...queue, workers: [] } }],
  ['queue', 'the Schedule is gone', { queue: { ...queue, schedule: null } }],
  ['queue', 'the Schedule is paused', scheduled({ paused: true })],
  ['queue', 'the Schedule is paused with a note', scheduled({ paused: true, note: 'maintenance' })],
  ['queue', 'the Schedule was edited', scheduled({ everySeconds: null })],
  ['queue', 'the Schedule has no next tick', scheduled({ nextAt: null })],
  ['queue', 'the Schedule ticks no more', scheduled({ lastAt: long })],
  ['queue', 'a search attribute is missing', { queue: { ...queue, missingAttributes: ['incidentType'] } }],
  ['queue', 'what waits is not taken up', { neglected: { incidentId: 'inc_1', minutes: 7 } }],
  ['platform', 'it does not answer', { platform: { stale: true } }],
  ['model', 'its credit is used up', failing('402 Insufficient credit')],
  ['model', 'its key is refused', failing('401 Incorrect API key provided')],
  ['model', 'it is not reached', failing('connect ECONNREFUSED')],
  ['model', 'it does not answer in time', failing('no answer within 120 s')],
  [
    'large bodies',
    'no worker takes them up',
    { waiting: { bodies: 2, alerts: 2_500, oldestSeconds: 500, idleSeconds: 121 } },
  ],
  [
    'messages',
    'a webhook is gone',
    { givenUp: [{ destination: 'webhook.critical', count: 2, response: '404' }], untold: 2 },
  ],
  [
    'messages',
    'Slack refuses',
    { givenUp: [{ destination: 'slack.tell', count: 1, response: 'channel_not_found' }], untold: 1 },
  ],
  ['messages', 'no worker takes them', { idle: { messages: 3, pages: 0, since: long } }],
  ['budget', 'that of the day is spent', { spend: { day: { dollars: 10, cap: 10 }, month: spent } }],
  ['budget', 'that of the month is spent', { spend: { day: spent, month: { dollars: 11, cap: 10 } } }],
]

const poorer: [duty: DutyName, found: Partial<PartFacts>][] = [
  [
    'alerts',
    {
      refused: [
        {
          ...{ sender: 'am', dialect: 'generic', code: 'UNPARSABLE', reason: 'no "summary".', count: 1 },
          lastAt: '2026-11-21T01:45:00.000000Z',
        },
      ],
    },
  ],
  ['retention', { retentionLateSince: long }],
  ['questions', { onCall: { isEmpty: false, useless: ['anna is disabled'] } }],
  ['questions', { idleBudget: 'the card is off' }],
  ['restore', { restored: { backupAt: long, restoredAt: '2026-11-21T02:00:00.000000Z' } }],
  ['trust', { unconfirmed: [{ type: 'replication_lag', tool: 'converge_shard' }] }],
  [
    'knowledge',
    {
      knowledge: {
        items: [],
        places: [],
        refused: [{ origin: 'folder', file: 'x/SKILL.md', why: 'it is not UTF-8', remedy: 'save it as UTF-8' }],
      } as unknown as PartFacts['knowledge'],
    },
  ],
  [
    'site policy',
    {
      sitePolicy: {
        inForce: null,
        waiting: null,
        reading: { readAt: '', digest: null, faults: [{ line: 3, why: 'there is no tool x', remedy: 'correct it' }] },
        silences: null,
      },
    },
  ],
  ['devices', { devices: [{ id: 'node-1', health: null, healthProblem: 'connect ECONNREFUSED' }] }],
]

test('every duty of the list can be lost in at least one way', () => {
  const vital = (Object.keys(duties) as DutyName[]).filter((name) => duties[name].isVital)
  expect([...new Set(losses.map(([duty]) => duty))]).toEqual(vital)
  expect([...vital, ...new Set(poorer.map(([duty]) => duty))]).toEqual(Object.keys(duties))
})

test('all duties are done, and no part names a remedy', () => {
  expect(lostDuties(well)).toEqual([])
  expect(partsOf(well).filter(({ remedy }) => remedy !== null)).toEqual([])
})

test.each(losses)('%s: if %s, the heartbeat stops and Health shows the remedy', (duty, _, found) => {
  const lost = lostDuties({ ...well, ...found })
  expect(lost.map(({ name }) => name.split(' of the ')[0])).toContain(duty)
  for (const { remedy, detail } of lost)
    expect([remedy, detail]).toEqual([expect.stringMatching(/.{10}/), expect.stringMatching(/\.$/)])
})

test('one failure of a model is not a loss, and neither is a failure before an answer', () => {
  const lastFailure = { detail: '503', at: '2026-11-26T03:00:00.000000Z' }
  const last = { model: 'm', at: '2026-11-26T03:00:01.000000Z', durationMs: 1 }
  for (const model of [
    { last: null, lastHour: { answers: 0, failures: 1 }, lastFailure },
    { last, lastHour: { answers: 1, failures: 5 }, lastFailure },
  ])
    expect(lostDuties({ ...well, model })).toEqual([])
})

test('a part that nobody asked, a part that is off, and a message that another channel delivered are not losses', () => {
  const found: Partial<PartFacts> = {
    platform: null,
    model: { last: null, lastHour: { answers: 0, failures: 0 }, lastFailure: null },
    givenUp: [{ destination: 'webhook.critical', count: 1, response: '404' }],
    queue: { ...queue, schedule: { ...schedule, paused: true, note: 'AGENT_ENABLED is false' } },
    // A worker is at it: a body of 50,000 alerts takes minutes.
    waiting: { bodies: 1, alerts: 9_000, oldestSeconds: 500, idleSeconds: 1 },
  }
  const facts = { ...well, ...found }
  expect(lostDuties(facts)).toEqual([])
  expect(
    partsOf(facts)
      .filter(({ status }) => status === 'failed')
      .map(({ name }) => name),
  ).toEqual(['messages'])
})

test('an unreadable runbook or an unreachable device is not a lost duty', () => {
  for (const [, found] of poorer) expect(lostDuties({ ...well, ...found })).toEqual([])
})

test('each device is listed with what it lacks and why, and a device that was not asked does not count as well', () => {
  const confined = { sandbox: 'bwrap', unavailable: {} }
  const lost = { sandbox: 'none', unavailable: { sandbox: 'unshare: /mnt/x (nfs4) cannot be made read-only' } }
  const part = (...devices: [health: object | null, healthProblem: string | null][]) =>
    partsOf({
      ...well,
      devices: devices.map(([health, healthProblem], at) => ({ id: `n${at}`, health, healthProblem })) as never,
    }).find(({ name }) => name === 'devices')
  expect(part()).toBeUndefined()
  expect(part([confined, null])).toMatchObject({ status: 'ok', remedy: null })
  expect(part([confined, null], [null, null])).toMatchObject({ status: 'unknown', detail: 'Health not read yet: n1.' })
  expect(part([confined, null], [lost, null], [confined, 'no answer'])).toMatchObject({
    status: 'failed',
    detail: expect.stringMatching(
      /^These devices do not answer: n2\. .*: n1 \(unshare: \/mnt\/x \(nfs4\) cannot be made read-only\)\.$/,
    ),
    remedy: expect.stringContaining('bubblewrap'),
  })
})

test("the operators' page has the same table of duties as the code", () => {
  const page = readFileSync('docs/how-to/watch-from-outside.md', 'utf8')
  for (const [name, { lostWhen, remedy, isVital }] of Object.entries(duties))
    if (isVital) expect(page).toContain(`| ${name} | ${lostWhen} | ${remedy} |`)
})

describe('a loss is reported by each channel', () => {
  const database = useDatabase()
  const ways: [way: string, settings: string[], told: string][] = [
    ['webhook.critical', ['webhook.critical.url'], 'webhook.critical'],
    ['webhook.escalated', ['webhook.escalated.url'], 'webhook.escalated'],
    ['webhook.approval', ['webhook.approval.url'], 'webhook.approval'],
    ['webhook.resolved', ['webhook.resolved.url'], 'webhook.resolved'],
    [
      'all webhooks',
      ['critical', 'escalated', 'approval', 'resolved'].map((each) => `webhook.${each}.url`),
      'webhook.escalated',
    ],
    ['a webhook of the shape of Slack', ['webhook.escalated.url', 'webhook.escalated.template'], 'webhook.escalated'],
    ['the Slack app', [], 'slack.tell'],
    ['PagerDuty', [], 'to.pagerduty'],
    ['Microsoft Teams', [], 'to.teams'],
    ['e-mail', [], 'to.email'],
    ['nothing', [], ''],
  ]
  /** A destination whose route takes nothing else. */
  const destined = (kind: string) => sql`
    insert into destination (name, kind, options, secrets, route, enabled, created_by)
    values (${kind}, ${kind}, '{}', '{}', '{"severities":["info"],"types":["none"],"triggers":["digest"],"hours":null}', true, 'anna')`
  beforeAll(() => openedIncident(database.db))

  const later = () =>
    sql`update lost_duty set since = since - interval '1 minute', seen_at = seen_at - interval '1 minute'`.execute(
      database.owner,
    )
  const sent = async () =>
    (
      await sql<{
        destination: string
        notification: { trigger: string; reason: string; page: boolean; incident: { title: string } }
      }>`
      select destination, notification from delivery where notification->>'trigger' = 'duty' order by id`.execute(
        database.db,
      )
    ).rows

  test.each(ways)(
    '%s tells people once, at the second check, what is lost and what to do',
    async (way, settings, told) => {
      await sql`delete from platform_config where key like 'webhook.%'`.execute(database.owner)
      await sql`delete from slack_channel`.execute(database.owner)
      for (const key of settings)
        await storeSetting(database.db, key, key.endsWith('template') ? 'slack' : `https://hooks.example.com/${key}`)
      await sql`delete from destination`.execute(database.owner)
      if (told.startsWith('to.')) await destined(told.slice('to.'.length)).execute(database.owner)
      if (way === 'the Slack app')
        await sql`insert into slack_channel (channel, active) values ('C1', true)`.execute(database.owner)
      for (const [duty, loss, found] of losses) {
        await sql`delete from delivery`.execute(database.owner)
        await sql`delete from lost_duty`.execute(database.owner)
        const lost = lostDuties({ ...well, ...found })
        await tellLostDuties(database.db, lost)
        const first = await sent()
        await later()
        await tellLostDuties(database.db, lost)
        await tellLostDuties(database.db, lost)
        const all = await sent()
        const expected = told === '' ? [] : lost.map(() => told)
        expect([duty, loss, first.length, all.map(({ destination }) => destination)]).toEqual([duty, loss, 0, expected])
        for (const [at, { notification }] of all.entries()) {
          const { detail, remedy } = lost[at]!
          expect(notification).toMatchObject({ page: true, incident: { title: expect.stringContaining(duty) } })
          expect(notification.reason).toBe(`${detail} To do: ${remedy}.`)
        }
      }
    },
  )

  test('a loss that could not be reported is reported as soon as a channel works', async () => {
    await sql`delete from platform_config where key like 'webhook.%'`.execute(database.owner)
    await sql`delete from slack_channel`.execute(database.owner)
    await sql`delete from delivery`.execute(database.owner)
    await sql`delete from lost_duty`.execute(database.owner)
    const lost = lostDuties({ ...well, isReachable: false })
    await tellLostDuties(database.db, lost)
    await later()
    expect(await tellLostDuties(database.db, lost)).toEqual([])
    await storeSetting(database.db, 'webhook.critical.url', 'https://hooks.example.com/critical')
    expect(await tellLostDuties(database.db, lost)).toEqual(['Nightshift: Temporal is lost'])
    expect(await tellLostDuties(database.db, lost)).toEqual([])
    expect(await sent()).toHaveLength(1)
    await sql`delete from platform_config where key like 'webhook.%'`.execute(database.owner)
  })

  test('a recovered duty is reported once, and a duty that was lost for a moment is never reported', async () => {
    await storeSetting(database.db, 'webhook.critical.url', 'https://hooks.example.com/critical')
    await sql`delete from delivery`.execute(database.owner)
    await sql`delete from lost_duty`.execute(database.owner)
    const lost = lostDuties({ ...well, isReachable: false })
    const titles = async () => (await sent()).map(({ notification }) => notification.incident.title)
    await tellLostDuties(database.db, lost)
    for (let minute = 0; minute < 3; minute += 1) {
      await later()
      await tellLostDuties(database.db, [])
    }
    expect(await titles()).toEqual([])
    await tellLostDuties(database.db, lost)
    await later()
    await tellLostDuties(database.db, lost)
    for (let minute = 0; minute < 4; minute += 1) {
      await later()
      await tellLostDuties(database.db, [])
    }
    expect(await titles()).toEqual(['Nightshift: Temporal is lost', 'Nightshift: Temporal is back'])
  })
})
