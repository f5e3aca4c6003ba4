import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { type Closing, closeIncident } from '../../../db/incidents/close-incident.ts'
import { claimIncident } from '../../../db/incidents/incidents.ts'
import { takeIncident } from '../../../db/incidents/owners.ts'
import { reopenIncident } from '../../../db/incidents/reopen-incident.ts'
import { reportOf } from '../../../db/incidents/reports.ts'
import { append } from '../../../db/log/append.ts'
import { systemScope } from '../../../db/scope.ts'
import { agentActor, type EventMetadata } from '../../../domain/event.ts'
import type { Report } from '../../../domain/report.ts'
import { asked } from '../../support/announced.ts'
import { moveClock, openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()
let passed = 0

/** Lets time pass for everything that the database decides. */
async function pass(seconds: number): Promise<void> {
  passed += seconds
  await moveClock(database.owner, `${passed} seconds`)
}

const today = async (): Promise<string> => {
  const { rows } = await sql<{ day: string }>`
    select to_char(nightshift_now() at time zone 'UTC', 'YYYY-MM-DD') as day`.execute(database.db)
  return rows[0]?.day ?? ''
}

async function began(type: string, resource = ''): Promise<string> {
  const id = await openedIncident(database.db, { labels: { incident_type: type }, startsAt: '2026-11-21T01:00:00Z' })
  if (resource)
    await sql`update incident set resource_kind = 'shard', resource_id = ${resource} where id = ${id}`.execute(
      database.owner,
    )
  return id
}

/** Taken by a run, with the row that its first activity writes. */
async function claimed(incidentId: string, attempt = 1): Promise<void> {
  const run = { workflowId: `investigate:${incidentId}:${attempt}`, role: 'leader' as const, groupId: 'grp_test' }
  await database.db.transaction().execute(async (trx) => {
    await claimIncident(trx, { ...run, incidentId, attempt, timeBudgetSeconds: 1800 })
    const row = { kind: 'claimed', actor: 'system:nightshift', detail: 'Claimed' } as const
    await append(trx, incidentId, attempt, { ...row, metadata: { ...run, config: {} } })
  })
}

type Resolved = Extract<Closing, { status: 'resolved' }>
const repaired: Resolved = { status: 'resolved', resolution: 'Done', outcome: 'repaired', claims: [], confidence: null }

async function closed(id: string, closing: Closing, actor = agentActor, attempt: number | null = 1): Promise<void> {
  await database.db.transaction().execute((trx) => closeIncident(trx, id, attempt, closing, { actor, stepKey: null }))
}

/** A person's row: `detail` says what they did. */
async function noted(id: string, detail: string): Promise<void> {
  const metadata = { text: detail, confidence: null, action: null }
  await database.db
    .transaction()
    .execute((trx) => append(trx, id, null, { kind: 'commented', actor: 'user:anna', detail, metadata }))
}

const totalOf = async (type: string): Promise<Report['total']> =>
  (await reportOf(systemScope(database.db), { since: '2026-01-01', until: await today() }, { type })).total

test('an incident that the agent resolved without a person counts as auto-resolved, whatever people write afterwards', async () => {
  const ids = [await began('auto'), await began('auto'), await began('auto'), await began('auto')] as const
  const [alone, told, byHand, expected] = ids
  for (const id of [alone, told, expected]) await claimed(id)
  await noted(told, 'Look at the disk first')
  await closed(alone, repaired)
  await closed(told, repaired)
  await closed(byHand, repaired, 'user:anna', null)
  await closed(expected, { ...repaired, outcome: 'expected' })
  await noted(alone, 'Nice')
  expect(await totalOf('auto')).toMatchObject({ incidents: 4, closed: 4, resolved: 4, autoResolved: 1 })
})

test('a run or a person acknowledges an incident, and the median and the 90th percentile differ', async () => {
  const ids = await Promise.all(Array.from({ length: 10 }, () => began('taken')))
  await pass(10)
  for (const id of ids.slice(0, 8)) await claimed(id)
  await pass(990)
  const operatorId = await ensureOperator(database.db, 'anna', 'approver')
  const by = { operatorId, actor: 'user:anna', name: 'anna' }
  for (const id of ids.slice(8)) await database.db.transaction().execute((trx) => takeIncident(trx, id, by))
  const { acknowledgeSeconds, resolveSeconds, escalated } = await totalOf('taken')
  expect(acknowledgeSeconds?.p50).toBeGreaterThanOrEqual(10)
  expect(acknowledgeSeconds?.p50).toBeLessThan(60)
  expect(acknowledgeSeconds?.p90).toBeGreaterThanOrEqual(1_000)
  expect([resolveSeconds, escalated]).toEqual([null, 2])
})

test('a question waits until it is decided or expired, and an undecided question has no waiting time yet', async () => {
  const [first, second] = [await began('asked'), await began('asked')]
  for (const id of [first, second]) await claimed(id)
  const approvals = [await asked(database.db, first), await asked(database.db, second)]
  expect(await totalOf('asked')).toMatchObject({ approvals: 2, approvalSeconds: null })
  await sql`update approval set status = 'denied', decided_at = requested_at + interval '70 seconds'
    where id = ${approvals[0]}`.execute(database.owner)
  expect(await totalOf('asked')).toMatchObject({ approvals: 2, approvalSeconds: { p50: 70, p90: 70 } })
})

test('an approval within five seconds counts as perhaps unread, except from the person who wrote the call', async () => {
  const id = await began('hasty')
  await claimed(id)
  const vote = async (seconds: number, via: string) => {
    const approval = await asked(database.db, id)
    await sql`insert into approval_decision (approval_id, operator_id, decision, via, at)
      select ${approval}, (select id from operator limit 1), 'approve', ${via}, requested_at + make_interval(secs => ${seconds})
      from approval where id = ${approval}`.execute(database.owner)
  }
  await ensureOperator(database.db, 'hasty', 'approver')
  await vote(3, 'page')
  await vote(9, 'page')
  await vote(1, 'edit')
  await vote(1, 'direct')
  expect(await totalOf('hasty')).toMatchObject({ approvals: 4, approvalsWithinSeconds: 1 })
})

test('a repair did not last if its incident continued, or its alert returned on the same resource within a day', async () => {
  const [lasting, again, reopened] = [
    await began('lasting', 'a'),
    await began('lasting', 'b'),
    await began('lasting', 'c'),
  ]
  for (const id of [lasting, again, reopened]) {
    await claimed(id)
    await closed(id, repaired)
  }
  await database.db.transaction().execute((trx) => reopenIncident(trx, reopened))
  await pass(3_600)
  const [next, other] = [await began('lasting', 'b'), await began('other_type', 'a')]
  expect(await totalOf('lasting')).toMatchObject({ incidents: 4, repairs: 3, repairsNotLasting: 2 })
  await pass(86_400)
  // A day later it is another story.
  await began('lasting', 'a')
  expect([next, other, (await totalOf('lasting')).repairsNotLasting]).toEqual([next, other, 2])
  await claimed(reopened, 2)
  await closed(reopened, { ...repaired, outcome: 'self_resolved' }, agentActor, 2)
  expect(await totalOf('lasting')).toMatchObject({ repairs: 3, repairsNotLasting: 2 })
})

test('escalations are counted by category, and claims without a row are counted whether refused or marked', async () => {
  const [refused, marked, unnamed] = [await began('said'), await began('said'), await began('said')]
  for (const id of [refused, marked, unnamed]) await claimed(id)
  const call = { callId: 'c1_0', tool: 'resolve_incident', arguments: {}, verdict: 'refuse', code: 'CLAIM_NOT_SHOWN' }
  await database.db.transaction().execute(async (trx) => {
    const by = { actor: agentActor, detail: 'refused' }
    await append(trx, refused, 1, { kind: 'call_judged', ...by, metadata: call as EventMetadata['call_judged'] })
    await append(trx, refused, 1, {
      kind: 'correction_sent',
      ...by,
      metadata: { code: 'phantom_claim', text: 'no row' },
    })
    await append(trx, refused, 1, { kind: 'correction_sent', ...by, metadata: { code: 'loop', text: 'again' } })
  })
  const claims = [{ kind: 'was' as const, text: 'it was full', quotes: [], shown: false, why: 'no quote' }]
  await closed(marked, { ...repaired, claims })
  await closed(refused, { status: 'escalated', reason: 'No tool', code: 'AGENT', category: 'no_tool' })
  await closed(unnamed, { status: 'escalated', reason: 'No turn left', code: 'TURN_LIMIT' })
  const { escalations, unshownClaims, escalated } = await totalOf('said')
  expect([escalated, unshownClaims]).toEqual([2, 3])
  expect(escalations).toEqual([
    { category: 'no_tool', count: 1 },
    { category: 'unknown', count: 1 },
  ])
})

test('weeks begin on Monday without a gap, a line of a type is that type, and the cost is of the days themselves', async () => {
  const id = await began('weekly')
  await sql`update incident set created_at = '2025-03-02T23:59:59Z' where id = ${id}`.execute(database.owner)
  const next = await began('weekly')
  await sql`update incident set created_at = '2025-03-16T00:00:00Z' where id = ${next}`.execute(database.owner)
  await sql`insert into model_spend values ('2025-03-05', 'm', 'weekly', 1, 0.5, 0), ('2025-03-05', 'm', 'none_of_them', 1, 2, 0)`.execute(
    database.owner,
  )
  const range = { since: '2025-02-26', until: '2025-03-16' }
  const found = await reportOf(systemScope(database.db), range)
  expect(found.byWeek.map(({ week, incidents, dollars }) => [week, incidents, dollars])).toEqual([
    ['2025-02-24', 1, 0],
    ['2025-03-03', 0, 2.5],
    ['2025-03-10', 1, 0],
  ])
  expect(found.byType.map(({ type, incidents, dollars }) => [type, incidents, dollars])).toEqual([
    ['weekly', 2, 0.5],
    ['none_of_them', 0, 2],
  ])
  expect(found.total).toMatchObject({ incidents: 2, dollars: 2.5 })
  await sql`update incident set severity = 'info' where id = ${next}`.execute(database.owner)
  const mild = await reportOf(systemScope(database.db), range, { severity: 'info' })
  // What models cost is kept by type: of one severity it is not known, and not nothing.
  expect([mild.total, mild.byType[0]]).toMatchObject([
    { incidents: 1, dollars: null },
    { type: 'weekly', incidents: 1, dollars: null },
  ])
  const none = await reportOf(systemScope(database.db), { since: '2025-03-16', until: '2025-02-26' })
  expect([none.total.incidents, none.byWeek]).toEqual([0, []])
})
