import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { claimIncident, openIncident } from '../../../db/incidents/incidents.ts'
import { findNeglected, queuePlaceOf } from '../../../db/incidents/queue-place.ts'
import { systemScope } from '../../../db/scope.ts'
import { claimedIncident, openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

/** Each test has groups of its own. */
let run = 0

beforeEach(async () => {
  run += 1
  await sql`update incident set status = 'cancelled', assigned_to = null where status in ('open', 'investigating', 'awaiting_approval')`.execute(
    database.owner,
  )
  await sql`delete from platform_config`.execute(database.owner)
})

const open = (type: string, severity: 'critical' | 'warning' | 'info' = 'warning') =>
  openedIncident(database.db, { labels: { incident_type: type }, severity })
const place = (id: string) => queuePlaceOf(systemScope(database.db), id)
const set = (key: string, value: string) =>
  sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(database.db)

/** Stamped as the queue does it, alone, and taken by a run. */
async function work(id: string, role: 'leader' | 'follower' = 'leader'): Promise<void> {
  const { type } = await database.db
    .selectFrom('incident')
    .select('type')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const groupId = `grp_${run}_${type}`
  await sql`update incident set group_id = ${groupId}, queued_at = nightshift_now() where id = ${id}`.execute(
    database.db,
  )
  await database.db.transaction().execute((trx) =>
    claimIncident(trx, {
      incidentId: id,
      attempt: 1,
      workflowId: `investigate:${id}:1`,
      role,
      groupId,
      timeBudgetSeconds: 1800,
    }),
  )
}

test('an incident with none before it is investigated at the next tick', async () => {
  expect(await place(await open('disk_pressure'))).toEqual({
    ahead: 0,
    why: 'soon',
    text: 'Queued, next: the queue starts the incident at its next tick.',
  })
})

test('a follower waits for its leader, which is named, behind older or more urgent incidents of its type', async () => {
  const leader = await open('disk_pressure')
  await work(leader)
  await open('disk_pressure')
  const own = await open('disk_pressure')
  await open('service_down')
  expect(await place(own)).toEqual({
    ahead: 1,
    why: 'leader',
    text: `Queued, 1 ahead: its leader ${leader} is investigated first.`,
  })
  await open('disk_pressure', 'info')
  expect((await place(own))?.ahead).toBe(1)
})

test('a leader that waits for a person delays its followers for as long as the setting says', async () => {
  const leader = await open('disk_pressure')
  await work(leader)
  const own = await open('disk_pressure')
  await sql`update incident set status = 'awaiting_approval' where id = ${leader}`.execute(database.owner)
  expect(await place(own)).toMatchObject({
    why: 'leader',
    text: expect.stringMatching(/awaits approval; .* (29\d|300) s/),
  })
  await set('agent.leader_wait', '0')
  expect(await place(own)).toMatchObject({ why: 'soon' })
})

test('a critical incident does not wait for a warning that leads its group', async () => {
  await work(await open('disk_pressure'))
  expect(await place(await open('disk_pressure', 'critical'))).toMatchObject({ why: 'soon', ahead: 0 })
})

test('the next follower waits while as many followers run as the type may have', async () => {
  const leader = await open('disk_pressure')
  await work(leader)
  await set('agent.concurrency.disk_pressure', '1')
  await work(await open('disk_pressure'), 'follower')
  const own = await open('disk_pressure')
  await sql`update incident set status = 'cancelled', assigned_to = null where id = ${leader}`.execute(database.owner)
  expect(await place(own)).toMatchObject({ why: 'followers', text: expect.stringContaining('agent.concurrency') })
})

test('types that use every slot delay a new type, but no critical incident while one slot is reserved for it', async () => {
  for (const type of ['one', 'two']) await work(await open(type))
  const own = await open('three')
  expect(await place(own)).toMatchObject({ why: 'slots', text: expect.stringContaining('kept for critical') })
  expect(await place(await open('four', 'critical'))).toMatchObject({ why: 'soon' })
  await work(await open('five', 'critical'))
  expect(await place(own)).toMatchObject({ why: 'slots', text: expect.stringContaining('all 3 slots') })
})

test('while the agent is paused everything waits, and the reason is shown', async () => {
  await set('agent.paused', 'true')
  expect(await place(await open('disk_pressure'))).toMatchObject({ why: 'paused' })
})

test('an incident that is investigated, closed, left to people or unknown has no place in the queue', async () => {
  const kept = await open('disk_pressure')
  await sql`update incident set kept_reason = 'a person asked' where id = ${kept}`.execute(database.owner)
  for (const id of [await claimedIncident(database.db), kept, 'inc_nothing']) expect(await place(id)).toBeNull()
})

test('an incident that waits five minutes for no reason is neglected, and one that waits for a slot or a person is not', async () => {
  const neglected = () => findNeglected(systemScope(database.db))
  const id = await open(`alone_${run}`)
  expect(await neglected()).toBeNull()
  const age = () =>
    sql`update incident set created_at = created_at - interval '7 minutes', updated_at = updated_at - interval '1 hour'`.execute(
      database.owner,
    )
  await age()
  expect(await neglected()).toEqual({ incidentId: id, minutes: 7 })
  await set('agent.paused', 'true')
  expect(await neglected()).toBeNull()
  await sql`delete from platform_config`.execute(database.owner)
  for (const other of ['a', 'b', 'c']) await work(await open(`${other}_${run}`))
  expect(await neglected()).toBeNull()
})

test('an incident that waited long in a storm and is next now is not neglected, because the queue is busy', async () => {
  const neglected = () => findNeglected(systemScope(database.db))
  const quiet = () =>
    sql`update incident set updated_at = updated_at - interval '6 minutes', queued_at = queued_at - interval '6 minutes'`.execute(
      database.owner,
    )
  const id = await open(`next_${run}`)
  await sql`update incident set created_at = created_at - interval '20 minutes' where id = ${id}`.execute(
    database.owner,
  )
  const other = await open(`other_${run}`)
  await work(other)
  expect([(await place(id))?.why, await neglected()]).toEqual(['soon', null])
  await quiet()
  expect(await neglected()).toEqual({ incidentId: id, minutes: 6 })
  // Stamped, it waits for its claim alone, whatever others do.
  await sql`update incident set group_id = 'grp_next', queued_at = nightshift_now() where id = ${id}`.execute(
    database.owner,
  )
  expect(await neglected()).toBeNull()
  await quiet()
  await sql`update incident set updated_at = nightshift_now() where id = ${other}`.execute(database.owner)
  expect(await neglected()).toEqual({ incidentId: id, minutes: 6 })
})

test('a question waits only for other questions', async () => {
  for (const type of ['one', 'two', 'three']) await work(await open(type, 'critical'))
  await open('four', 'critical')
  const ask = async () => {
    const question = {
      type: 'question',
      severity: 'info' as const,
      severitySource: 'person' as const,
      title: 'Why?',
      resource: null,
      requestedBy: null,
    }
    return (await database.db.transaction().execute((trx) => openIncident(trx, question))).id
  }
  const [first, second, third] = [await ask(), await ask(), await ask()]
  expect(await place(first)).toMatchObject({ why: 'soon', ahead: 0 })
  await work(first)
  await work(second)
  expect(await place(third)).toEqual({
    ahead: 0,
    why: 'slots',
    text: 'Queued, next: 2 other questions are being answered (agent.max_questions).',
  })
})
