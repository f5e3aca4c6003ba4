import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { requestApproval } from '../../../db/approvals/ask.ts'
import type { Trx } from '../../../db/connect.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { claimIncident, incidentById } from '../../../db/incidents/incidents.ts'
import { overdueIncidents, releaseStranded } from '../../../db/incidents/overdue.ts'
import { openByHand } from '../../../db/incidents/person-requests.ts'
import { groupState, leadingTypes, stampQueue } from '../../../db/incidents/queue.ts'
import { append } from '../../../db/log/append.ts'
import { claimedIncident, openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

beforeEach(async () => {
  await sql`update incident set status = 'cancelled', assigned_to = null where status in ('open', 'investigating', 'awaiting_approval')`.execute(
    database.owner,
  )
})

const open = (type: string, count: number, severity: 'critical' | 'warning' | 'info' = 'warning') =>
  Promise.all(
    Array.from({ length: count }, () => openedIncident(database.db, { labels: { incident_type: type }, severity })),
  )

const stamped = async () => {
  const { rows } = await sql<{ type: string; count: number }>`
    select type, count(*) as count from incident where status = 'open' and group_id is not null group by type`.execute(
    database.db,
  )
  return Object.fromEntries(rows.map((row) => [row.type, Number(row.count)]))
}

test('a crowded type delays no other type, because twenty incidents are taken in rotation', async () => {
  await open('disk_pressure', 40)
  await open('replication_lag', 3)
  await open('service_down', 2)
  await stampQueue(database.db, { incidents: 4, critical: 0, questions: 2 })
  expect(await stamped()).toEqual({ disk_pressure: 15, replication_lag: 3, service_down: 2 })
})

test('twenty incidents of one type are all taken by one tick', async () => {
  await open('disk_pressure', 20)
  await stampQueue(database.db, { incidents: 3, critical: 0, questions: 2 })
  expect(await stamped()).toEqual({ disk_pressure: 20 })
})

test('only as many types are woken as there are slots, the most urgent first', async () => {
  await open('t_info', 1, 'info')
  await open('t_warning', 1)
  await open('t_critical', 1, 'critical')
  expect(await stampQueue(database.db, { incidents: 2, critical: 0, questions: 2 })).toEqual([
    't_critical',
    't_warning',
  ])
})

test('a type that waits for a person occupies no slot', async () => {
  const [id] = await open('host_down', 1)
  await claim(id as string)
  await open('disk_pressure', 1)
  expect(await stampQueue(database.db, { incidents: 1, critical: 0, questions: 2 })).toEqual([])
  await sql`update incident set status = 'awaiting_approval' where id = ${id}`.execute(database.owner)
  expect(await stampQueue(database.db, { incidents: 1, critical: 0, questions: 2 })).toEqual(['disk_pressure'])
})

/** What a person asks. */
const ask = (title: string) =>
  database.db.transaction().execute(async (trx) => {
    const question = { type: 'question', severity: 'info' as const, title, resource: null }
    return (await openByHand(trx, question, title, { actor: 'user:anna', operatorId: null })).id
  })

test('a storm in all slots delays no question, because questions have slots of their own and come first', async () => {
  for (const type of ['one', 'two', 'three']) {
    const [leader] = await open(type, 12, 'critical')
    await claim(leader as string)
  }
  await open('four', 30, 'critical')
  const slots = { incidents: 3, critical: 0, questions: 2 }
  await stampQueue(database.db, slots)
  const [first, second, third] = [await ask('Which hosts are dead?'), await ask('And which VMs?'), await ask('Why?')]
  expect((await stampQueue(database.db, slots))[0]).toBe('question')
  expect((await stamped()).question).toBe(2)
  const state = await groupState(database.db, 'question')
  expect(state?.members.map(({ incidentId }) => incidentId)).toEqual([first, second])
  // Neither takes a slot of an incident, nor waits for the other.
  await claim(first)
  await claim(second)
  expect(await stampQueue(database.db, slots)).not.toContain('question')
  expect(await leadingTypes(database.db)).toHaveLength(3)
  await sql`update incident set status = 'resolved', assigned_to = null where id = ${first}`.execute(database.owner)
  expect((await stampQueue(database.db, slots))[0]).toBe('question')
  expect((await groupState(database.db, 'question'))?.members.map(({ incidentId }) => incidentId)).toEqual([third])
})

test('late incidents join the group that is at work', async () => {
  await open('disk_pressure', 2)
  await stampQueue(database.db, { incidents: 3, critical: 0, questions: 2 })
  const before = await groupState(database.db, 'disk_pressure')
  await claim(before?.members[0]?.incidentId as string)
  await open('disk_pressure', 1)
  await stampQueue(database.db, { incidents: 3, critical: 0, questions: 2 })
  const after = await groupState(database.db, 'disk_pressure')
  expect(after).toMatchObject({ groupId: before?.groupId, investigating: 1, members: [{}, {}] })
})

test('if ten runs claim one incident, exactly one gets it, and this run may claim it again', async () => {
  const [id] = await open('disk_pressure', 1)
  const claims = await Promise.all(Array.from({ length: 10 }, (_, index) => claim(id as string, `run-${index}`)))
  expect(claims.filter(Boolean)).toHaveLength(1)
  expect(await claim(id as string, `run-${claims.indexOf(true)}`)).toBe(true)
})

test('an incident that is closed twice is closed once', async () => {
  const id = await claimedIncident(database.db)
  const close = () =>
    database.db
      .transaction()
      .execute((trx) =>
        closeIncident(
          trx,
          id,
          null,
          { status: 'escalated', code: 'X', reason: 'because' },
          { actor: 'user:anna', stepKey: null },
        ),
      )
  expect((await Promise.all([close(), close(), close()])).filter(Boolean)).toHaveLength(1)
  expect(await incidentById(database.db, id)).toMatchObject({ status: 'escalated', assignedTo: null })
})

test('an incident whose run is silent for twice its time limit is overdue, and one whose run writes rows is not', async () => {
  const id = await claimedIncident(database.db)
  expect(await overdueIncidents(database.db)).toEqual([])
  await sql`update incident set last_event_at = nightshift_now() - interval '3601 seconds' where id = ${id}`.execute(
    database.owner,
  )
  expect(await overdueIncidents(database.db)).toEqual([{ incidentId: id, attempt: 1, why: 'silent' }])
})

test('an incident whose approval nobody can decide any more is overdue, whatever was decided for other incidents', async () => {
  const [lost, decided, waits] = await Promise.all([1, 2, 3].map(() => waiting()))
  expect(await overdueIncidents(database.db)).toEqual([])
  await sql`update approval set expires_at = nightshift_now() - interval '3 minutes' where incident_id = ${lost}`.execute(
    database.owner,
  )
  await sql`update approval set status = 'approved', decided_at = nightshift_now() where incident_id = ${decided}`.execute(
    database.owner,
  )
  expect(await overdueIncidents(database.db)).toEqual([{ incidentId: lost, attempt: 1, why: 'unexpired' }])
  // One that joined another incident's approval waits for as long as that one can be answered.
  await database.db.transaction().execute((trx) => joins(trx, lost as string, waits as string))
  expect(await overdueIncidents(database.db)).toEqual([])
})

test('members of a dead group are released and grouped again', async () => {
  await open('disk_pressure', 2)
  await stampQueue(database.db, { incidents: 3, critical: 0, questions: 2 })
  expect(await releaseStranded(database.db, 180)).toBe(0)
  await sql`update incident set queued_at = nightshift_now() - interval '200 seconds' where status = 'open'`.execute(
    database.owner,
  )
  expect(await releaseStranded(database.db, 180)).toBe(2)
  await stampQueue(database.db, { incidents: 3, critical: 0, questions: 2 })
  expect(await stamped()).toEqual({ disk_pressure: 2 })
})

/** An incident that waits for a person. */
async function waiting(): Promise<string> {
  const incidentId = await claimedIncident(database.db)
  await database.db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'converge_shard',
      args: {},
      targets: [],
      reason: 'behind',
      actionDigest: incidentId,
      stateFingerprint: 'state',
      risk: 'high' as const,
      reversible: true,
      required: 1,
      dryRun: { possible: false, summary: 'none', details: {} },
      expirySeconds: 600,
      stepKey: `${incidentId}:ask`,
      replaces: null,
      actor: 'agent:incident-investigator',
    }),
  )
  return incidentId
}

/** The row by which a call of one incident waits for the approval of another. */
async function joins(trx: Trx, incidentId: string, other: string): Promise<void> {
  const approval = await trx
    .selectFrom('approval')
    .select('id')
    .where('incidentId', '=', other)
    .executeTakeFirstOrThrow()
  await append(trx, incidentId, 1, {
    kind: 'call_judged',
    actor: 'agent:incident-investigator',
    detail: 'ask: converge_shard',
    metadata: { verdict: 'ask', approvalId: approval.id } as never,
  })
}

async function claim(incidentId: string, workflowId = 'run'): Promise<boolean> {
  return await database.db.transaction().execute(async (trx) => {
    const { groupId } = await trx
      .selectFrom('incident')
      .select('groupId')
      .where('id', '=', incidentId)
      .executeTakeFirstOrThrow()
    return await claimIncident(trx, {
      incidentId,
      attempt: 1,
      workflowId,
      role: 'leader',
      groupId: groupId ?? 'grp_1',
      timeBudgetSeconds: 1800,
    })
  })
}
