import { beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { type OperatorRow, putOperator } from '../../../db/access/operators.ts'
import type { Trx } from '../../../db/connect.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { changeFollowUp, closeFollowUp } from '../../../db/incidents/follow-ups.ts'
import { listFollowUps } from '../../../db/incidents/shift.ts'
import { erasePerson } from '../../../db/retention/erasure.ts'
import { systemScope } from '../../../db/scope.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { agentActor } from '../../../domain/event.ts'
import { addWorkingDays } from '../../../domain/night.ts'
import { asked } from '../../support/announced.ts'
import { openedIncident, storeSetting, useDatabase } from '../../support/database.ts'
import { claimed } from '../verify/life.ts'

const database = useDatabase()
const inTrx = <T>(act: (trx: Trx) => Promise<T>) => database.db.transaction().execute(act)
const today = new Date().toISOString().slice(0, 10)

let anna: OperatorRow
beforeEach(async () => {
  await sql`delete from platform_config; delete from follow_up; delete from delivery`.execute(database.owner)
  anna = await person('anna')
})

async function person(name: string, disabled = false): Promise<OperatorRow> {
  const base = { name, role: 'approver', maxRisk: 'critical', incidentTypes: null, rights: [], disabled } as const
  return (await inTrx((trx) => putOperator(trx, base))).now
}
const by = ({ id, name }: OperatorRow) => ({ operatorId: id, name, actor: `user:${name}` })

async function taken(): Promise<string> {
  const id = await openedIncident(database.db)
  await inTrx((trx) => claimed(trx, id))
  return id
}

async function mitigate(id: string): Promise<void> {
  const half = { status: 'escalated', category: 'mitigated', reason: 'it reads again', code: 'AGENT' } as const
  await inTrx((trx) => closeIncident(trx, id, null, half, { actor: agentActor, stepKey: null }))
}

const followUpOf = async (incidentId: string) =>
  (await listFollowUps(systemScope(database.db), { incidentId })).first[0]

describe('an incident that ends as mitigated', () => {
  test('leaves a follow-up for the person who approved, due in working days, and reports it by a trigger of its own', async () => {
    await storeSetting(database.db, 'follow_up.days', '2')
    await storeSetting(database.db, 'webhook.escalated.url', 'http://127.0.0.1:9/')
    const id = await taken()
    const approval = await asked(database.db, id)
    await sql`insert into approval_decision (approval_id, operator_id, decision, via) values (${approval}, ${anna.id}, 'approve', 'api')`.execute(
      database.owner,
    )
    await mitigate(id)
    expect(await followUpOf(id)).toMatchObject({
      owner: 'anna',
      group: null,
      dueOn: addWorkingDays(today, 2),
      isOverdue: false,
      closedAt: null,
    })
    const { rows } = await sql<{ text: string }>`select notification->>'reason' as text from delivery
      where incident_id = ${id} and notification->>'trigger' = 'follow_up'`.execute(database.owner)
    expect(rows).toEqual([{ text: `Follow-up for anna, due ${addWorkingDays(today, 2)}` }])
  })

  test('without an approval assigns the follow-up to the person on call, skips disabled people, and otherwise assigns nobody yet', async () => {
    const nobody = await taken()
    await mitigate(nobody)
    expect(await followUpOf(nobody)).toMatchObject({ owner: null, group: null })
    await person('ben', true)
    await storeSetting(database.db, 'approval.on_call', '-> ben anna')
    const listed = await taken()
    await mitigate(listed)
    expect(await followUpOf(listed)).toMatchObject({ owner: 'anna' })
  })

  test('leaves no follow-up if the escalation has another category', async () => {
    const id = await taken()
    const needs = { status: 'escalated', category: 'no_tool', reason: 'a new disk', code: 'AGENT' } as const
    await inTrx((trx) => closeIncident(trx, id, null, needs, { actor: agentActor, stepKey: null }))
    expect(await followUpOf(id)).toBeUndefined()
  })
})

test('a person gives a follow-up another owner, a group, or a date, and closes it with a note, and the log has each change', async () => {
  const id = await taken()
  await mitigate(id)
  const ben = await person('ben')
  expect(await changeFollowUp(database.db, id, { owner: 'ben' }, by(anna))).toBeNull()
  expect(await followUpOf(id)).toMatchObject({ owner: 'ben', group: null })
  expect(await changeFollowUp(database.db, id, { group: 'storage', dueOn: '2020-01-01' }, by(anna))).toBeNull()
  expect(await followUpOf(id)).toMatchObject({ owner: null, group: 'storage', isOverdue: true })
  expect((await listFollowUps(systemScope(database.db), { isOverdue: true })).count).toBe(1)
  expect(await closeFollowUp(database.db, id, 'the disk was replaced', by(ben))).toBeNull()
  expect(await followUpOf(id)).toMatchObject({ closedBy: 'ben', isOverdue: false })
  const { rows } = await sql<{ detail: string; actor: string }>`select detail, actor from incident_event
    where incident_id = ${id} and metadata->>'code' like 'follow_up_%' order by seq`.execute(database.owner)
  expect(rows.map(({ detail }) => detail)).toEqual([
    `Follow-up for an owner that a person still has to name, due ${addWorkingDays(today, 3)}`,
    `anna changed the follow-up: for ben, due ${addWorkingDays(today, 3)}`,
    'anna changed the follow-up: for storage, due 2020-01-01',
    'ben closed the follow-up: the disk was replaced',
  ])
  expect((await verifyIncident(database.db, id)).differences).toEqual([])
})

test('a closed or unknown follow-up, and a change to nobody, are refused by name', async () => {
  const id = await taken()
  expect(await closeFollowUp(database.db, id, 'done', by(anna))).toBe('none')
  expect(await closeFollowUp(database.db, 'inc_none', 'done', by(anna))).toBe('none')
  await mitigate(id)
  expect(await changeFollowUp(database.db, id, { owner: 'zoe' }, by(anna))).toBe('unknown owner')
  await closeFollowUp(database.db, id, 'done', by(anna))
  expect(await closeFollowUp(database.db, id, 'done', by(anna))).toBe('closed')
  expect(await changeFollowUp(database.db, id, { dueOn: '2099-01-01' }, by(anna))).toBe('closed')
})

test.each([
  ['another owner', sql`update follow_up set owner_id = null`, /ownerId of its follow-up/],
  ['another date', sql`update follow_up set due_on = '2099-01-01'`, /dueOn of its follow-up/],
  [
    'a closing by nobody',
    sql`update follow_up set closed_at = now(), closed_by = owner_id`,
    /isClosed of its follow-up/,
  ],
  ['its absence', sql`delete from follow_up`, /its follow-up is missing/],
])('verify finds %s without a row', async (_name, alter, what) => {
  const id = await taken()
  await mitigate(id)
  await changeFollowUp(database.db, id, { owner: 'anna' }, by(anna))
  await alter.execute(database.owner)
  expect((await verifyIncident(database.db, id)).differences).toEqual([
    { subject: id, what: expect.stringMatching(what) },
  ])
})

test('the erasure of a person removes their words from a follow-up, and verify still passes', async () => {
  const id = await taken()
  await mitigate(id)
  const eve = await person('eve')
  await changeFollowUp(database.db, id, { owner: 'eve' }, by(eve))
  await closeFollowUp(database.db, id, 'eve replaced the disk of her laptop', by(eve))
  const { pseudonym } = await erasePerson(database.db, eve, { name: 'admin' })
  expect(await followUpOf(id)).toMatchObject({ owner: pseudonym, closedBy: pseudonym })
  const { rows } =
    await sql`select from incident_event where incident_id = ${id} and (detail ~ 'eve |laptop' or metadata::text ~ 'laptop')`.execute(
      database.owner,
    )
  expect(rows).toEqual([])
  expect((await verifyIncident(database.db, id)).differences).toEqual([])
})
