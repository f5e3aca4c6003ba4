import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { askAgainDue } from '../../../db/approvals/ask-again.ts'
import { decide } from '../../../db/approvals/decide.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { readDenials } from '../../../db/policy.ts'
import { agentActor } from '../../../domain/event.ts'
import type { Principal } from '../../../domain/permissions.ts'
import { asked } from '../../support/announced.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'
import { mintedToken } from '../../support/decision-tokens.ts'

const database = useDatabase()
let people = 0

/** An incident whose action somebody denied until `askAgainAt`, and whose run then handed over. */
async function denied(askAgainAt: string | null, change = '') {
  people += 1
  const name = `p${people}`
  const token = await createToken(database.db, {
    name,
    role: 'approver',
    operatorId: await ensureOperator(database.db, name, 'approver'),
  })
  const incidentId = await claimedIncident(database.db)
  const approvalId = await asked(database.db, incidentId)
  const said = { decision: 'deny', reason: 'not at night', askAgainAt } as const
  const principal = (await principalOf(database.db, token)) as Principal
  const outcome = await decide(database.db, {
    ...said,
    token: await mintedToken(database.db, principal, approvalId, said),
    ...{ approvalId, incidentId: null, caller: principal.operatorId, via: 'api' },
  })
  expect(outcome).toMatchObject({ outcome: 'recorded', status: 'denied' })
  // As a run that was denied hands over: closed, for people.
  const reason = 'It was denied, and nothing else may be done.'
  await database.db
    .transaction()
    .execute((trx) =>
      closeIncident(
        trx,
        incidentId,
        1,
        { status: 'escalated', code: 'DENIED_BEFORE', category: 'needs_approval', reason },
        { actor: agentActor, stepKey: null },
      ),
    )
  if (change) await sql.raw(change.replace('THIS', `'${incidentId}'`)).execute(database.owner)
  return incidentId
}

const later = async () =>
  await sql`update approval_decision set ask_again_at = ask_again_at - interval '8 hours' where ask_again_at is not null`.execute(
    database.owner,
  )
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()

test('"not now" blocks the action until its time, and then the incident is investigated afresh, once', async () => {
  const id = await denied(inHours(7))
  const { rows } = await sql<{ reason: string }>`select reason from approval_decision order by at desc limit 1`.execute(
    database.db,
  )
  expect(rows[0]?.reason).toMatch(/^not before \d{4}-\d\d-\d\d \d\d:\d\d UTC: not at night$/)
  expect(await readDenials(database.db, id)).toHaveLength(1)
  expect(await askAgainDue(database.db)).toBe(0)
  await later()
  const begun = await Promise.all(Array.from({ length: 4 }, () => askAgainDue(database.db)))
  expect(begun.reduce((sum, each) => sum + each, 0)).toBe(1)
  expect(await readDenials(database.db, id)).toEqual([])
  const row = await database.db.selectFrom('incident').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  expect(row).toMatchObject({ status: 'open', requestedBy: null })
})

test('a denial without an end blocks the action for good, and nobody is asked again', async () => {
  const id = await denied(null)
  await later()
  expect(await askAgainDue(database.db)).toBe(0)
  expect(await readDenials(database.db, id)).toHaveLength(1)
})

test.each([
  [
    'what somebody took meanwhile',
    `update incident set owner_id = (select id from operator limit 1), owned_at = now() where id = THIS`,
  ],
  ['what ended by itself', `update incident set status = 'resolved' where id = THIS`],
  ['what was investigated since', `update incident set attempt = attempt + 1 where id = THIS`],
])('%s is left alone', async (_, change) => {
  await denied(inHours(7), change)
  await later()
  expect(await askAgainDue(database.db)).toBe(0)
})

test('a time that passed more than a day ago asks nobody', async () => {
  await denied(inHours(7))
  for (let shift = 0; shift < 5; shift += 1) await later()
  expect(await askAgainDue(database.db)).toBe(0)
})
