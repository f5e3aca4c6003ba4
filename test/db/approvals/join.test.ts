import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { decide } from '../../../db/approvals/decide.ts'
import { tellJoined } from '../../../db/approvals/join.ts'
import { readDecision } from '../../../db/approvals/settle.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { verifyNext } from '../../../db/verify/page.ts'
import { agentActor } from '../../../domain/event.ts'
import type { Principal } from '../../../domain/permissions.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { mintedToken } from '../../support/decision-tokens.ts'
import { partOfRow } from '../../support/events.ts'

const api = useApi()

const reason = 'my mother is in that data centre tonight'

/** Two incidents of one question, which this person denied; the second was told. */
async function deniedForTwo(name: string): Promise<{ asking: string; waiting: string; approvalId: string }> {
  const { db } = api
  const operatorId = await ensureOperator(db, name, 'approver')
  const person = (await principalOf(db, await createToken(db, { name, role: 'approver', operatorId }))) as Principal
  const [asking, waiting] = [await claimedIncident(db), await claimedIncident(db)]
  const approvalId = await asked(db, asking)
  for (const incidentId of [asking, waiting]) await db.insertInto('slackThread').values({ incidentId }).execute()
  const { metadata } = partOfRow('call_judged', {
    ...{ callId: 'c4_0', tool: 'execute_migration', arguments: {}, verdict: 'ask', code: 'RISK_HIGH', reason: 'high' },
    ...{ actionDigest: 'of this run', approvalId, joins: asking, effect: 'write', risk: 'high', targets: [] },
  })
  const judged = { kind: 'call_judged', actor: agentActor, turn: 4, stepKey: `${waiting}.1:4:call_judged:0`, metadata }
  await db.transaction().execute((trx) => append(trx, waiting, 1, { ...judged, detail: 'asked' } as never))
  const token = await mintedToken(db, person, approvalId, { decision: 'deny' }, 'temporal')
  const said = { token, decision: 'deny' as const, approvalId, incidentId: asking, reason, caller: null }
  expect(await decide(db, { ...said, via: 'update' })).toMatchObject({ outcome: 'recorded' })
  const read = await readDecision(db, approvalId)
  if (!read) throw new Error('the decision is not there')
  for (let again = 0; again < 2; again += 1)
    await tellJoined(db, { incidentId: waiting, attempt: 1 }, { id: approvalId, ...read })
  return { asking, waiting, approvalId }
}

/**
 * What does not hold, but for incidents that the test claimed without the doors that lead there.
 */
async function differences() {
  const { differences: found } = await verifyNext(api.db, '', 1_000)
  return found.filter(({ what }) => !/^status is|in the same transaction/.test(what))
}

const toldIn = async (id: string) => (await eventsOf(api.db, id)).filter(({ kind }) => kind === 'approval_decided')

test('the answer to a shared question is sent once to the waiting run, and changes only the card in the thread that asked', async () => {
  const { asking, waiting, approvalId } = await deniedForTwo('ingeborg')
  expect(await toldIn(waiting)).toMatchObject([
    { actor: 'user:ingeborg', turn: 4, metadata: { joined: asking, callId: 'c4_0', actionDigest: 'of this run' } },
  ])
  const { rows } = await sql<{ incidentId: string }>`
    select distinct incident_id as "incidentId" from delivery
    where destination = 'slack.card' and notification ->> 'approvalId' = ${approvalId}`.execute(api.db)
  expect(rows).toEqual([{ incidentId: asking }])
  expect(await differences()).toEqual([])
})

test('a person who denied a shared question is erased in both incidents, and both chains are valid', async () => {
  const { asking, waiting } = await deniedForTwo('marguerite')
  const body = { resolution: 'it is over', outcome: 'no_fault' }
  for (const id of [asking, waiting]) expect((await api.post(`/incidents/${id}/resolve`, { body })).status).toBe(200)
  const erased = await api.post('/operators/marguerite/erasure', { body: { confirm: 'marguerite' } })
  expect([erased.status, erased.body.pseudonym]).toEqual([200, expect.stringMatching(/^erased-/)])
  for (const id of [asking, waiting]) {
    const rows = await toldIn(id)
    expect(rows).toMatchObject([
      { actor: `user:${erased.body.pseudonym}`, metadata: { reason: expect.stringContaining('[erased]') } },
    ])
    expect(JSON.stringify(rows)).not.toMatch(/marguerite|my mother/)
  }
  expect(await differences()).toEqual([])
})
