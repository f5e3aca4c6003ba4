import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { requestApproval } from '../../db/approvals/ask.ts'
import { decide } from '../../db/approvals/decide.ts'
import { consumeApproval, readDecision } from '../../db/approvals/settle.ts'
import { mintDecisionToken } from '../../db/approvals/tokens.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { DecisionOutcome } from '../../domain/approval.ts'
import type { Principal } from '../../domain/permissions.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'

/** `RACE_ROUNDS=2000 npm test -- test/db/races` plays as many as an afternoon allows. */
const rounds = Number(process.env.RACE_ROUNDS ?? 16)
const database = useDatabase()
const people: Principal[] = []

beforeAll(async () => {
  for (const name of ['anna', 'bert', 'cleo']) {
    const operatorId = await ensureOperator(database.db, name, 'approver')
    const token = await createToken(database.db, { name, role: 'approver', operatorId })
    people.push((await principalOf(database.db, token)) as Principal)
  }
})

async function asked(expirySeconds: number): Promise<{ id: string; incidentId: string }> {
  const incidentId = await claimedIncident(database.db)
  const { id } = await database.db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'execute_migration',
      args: {},
      targets: [],
      reason: 'the host is dead',
      actionDigest: incidentId,
      stateFingerprint: '',
      risk: 'high',
      reversible: true,
      required: 1,
      dryRun: { possible: true, summary: '', details: {} },
      expirySeconds,
      replaces: null,
      stepKey: `${incidentId}:ask`,
      actor: 'agent:incident-investigator',
    }),
  )
  return { id, incidentId }
}

const tokenOf = async (principal: Principal, id: string, decision: 'approve' | 'deny' = 'approve') => {
  const minted = await mintDecisionToken(database.db, principal, id, { decision }, 'temporal')
  return minted.outcome === 'minted' ? minted.token : 'none'
}

async function race(round: number): Promise<void> {
  const { db } = database
  // Some are decided around the very moment they expire: the database's clock says which side of
  // it.
  const isLate = round % 3 === 0
  const { id, incidentId } = await asked(isLate ? 1 : 600)
  const foreign = await tokenOf(people[0] as Principal, (await asked(600)).id)
  const tokens = await Promise.all(people.map((person) => tokenOf(person, id)))
  const denials = await Promise.all(people.map((person) => tokenOf(person, id, 'deny')))
  if (isLate) {
    await sql`select pg_sleep(greatest(0, extract(epoch from expires_at - nightshift_now())::float8 - 0.05 + ${(round % 10) / 100}))
      from approval where id = ${id}`.execute(db)
  }
  const say = (token: string, decision: 'approve' | 'deny', via: string) => () =>
    decide(db, { approvalId: id, incidentId: null, token, decision, reason: 'because', caller: null, via })
  const contenders: (() => Promise<unknown>)[] = [
    ...tokens.flatMap((token) => ['api', 'signal', 'update', 'slack'].map((via) => say(token, 'approve', via))),
    ...denials.map((token) => say(token, 'deny', 'page')),
    say(foreign, 'approve', 'api'),
    say('made-up', 'approve', 'signal'),
    () => readDecision(db, id),
    () => readDecision(db, id),
  ]
  if (round % 4 === 1) contenders.push(() => cancel(incidentId))
  contenders.sort(() => Math.random() - 0.5)
  const answers = await Promise.all(contenders.map((contender) => contender()))

  const outcomes = answers.filter(
    (each): each is DecisionOutcome => typeof each === 'object' && each !== null && 'outcome' in each,
  )
  const recorded = outcomes.filter(({ outcome }) => outcome === 'recorded')
  const { status } = await db.selectFrom('approval').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  const rows = (await eventsOf(db, incidentId)).filter(({ kind }) =>
    /^approval_(decided|expired|withdrawn)$/.test(kind),
  )
  const final = rows.filter((row) => row.kind !== 'approval_decided' || row.metadata.status !== 'pending')
  expect(recorded.length).toBeLessThanOrEqual(1)
  // Approved and then cancelled is two rows in that order; everything else is one.
  expect([1, status === 'withdrawn' && recorded.length === 1 ? 2 : 1]).toContain(final.length)
  if (status === 'approved' || status === 'denied') expect(recorded).toHaveLength(1)
  if (status === 'expired') expect(recorded).toHaveLength(0)
  for (const answer of outcomes) if ('message' in answer) expect(answer.message).toMatch(/\w/)
  const uses = await Promise.all([1, 2, 3].map(() => db.transaction().execute((trx) => consumeApproval(trx, id))))
  expect(uses.filter(Boolean)).toHaveLength(status === 'approved' ? 1 : 0)
}

async function cancel(incidentId: string): Promise<void> {
  await database.db
    .transaction()
    .execute((trx) =>
      closeIncident(
        trx,
        incidentId,
        null,
        { status: 'cancelled', reason: 'enough' },
        { actor: 'user:vera', stepKey: null },
      ),
    )
}

test(`decisions through every channel at the same moment, ${rounds} times: one outcome, every loser is told why, and at most one use`, async () => {
  for (let round = 0; round < rounds; round += 4) {
    await Promise.all([0, 1, 2, 3].map((n) => race(round + n)))
  }
}, 1_200_000)
