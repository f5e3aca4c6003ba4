import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { putOperator } from '../../../db/access/operators.ts'
import { principalOf } from '../../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { approversOf } from '../../../db/approvals/approvers.ts'
import { requestApproval } from '../../../db/approvals/ask.ts'
import { decide, voteOfEditor } from '../../../db/approvals/decide.ts'
import { listApprovals, usableApproval } from '../../../db/approvals/find.ts'
import { usableGrants, useGrant } from '../../../db/approvals/grants.ts'
import { consumeApproval, readDecision, withdrawPending } from '../../../db/approvals/settle.ts'
import { mintDecisionToken } from '../../../db/approvals/tokens.ts'
import type { Trx } from '../../../db/connect.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { readDenials } from '../../../db/policy.ts'
import { systemScope } from '../../../db/scope.ts'
import type { Approval, Decision } from '../../../domain/approval.ts'
import type { Principal, Role } from '../../../domain/permissions.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'
import { mintedToken } from '../../support/decision-tokens.ts'

const database = useDatabase()
const people: Record<string, Principal> = {}

beforeAll(async () => {
  for (const [name, role] of Object.entries({ anna: 'approver', bert: 'approver', vera: 'viewer' } as const)) {
    people[name] = await signedIn(name, role, await ensureOperator(database.db, name, role))
  }
  people.agent = await signedIn('agent', 'agent', null)
})

async function signedIn(name: string, role: Role, operatorId: string | null): Promise<Principal> {
  const token = await createToken(database.db, { name, role, operatorId })
  return (await principalOf(database.db, token)) as Principal
}

async function asked(more: { required?: number; expirySeconds?: number; risk?: 'high' | 'critical' } = {}) {
  const incidentId = await claimedIncident(database.db)
  const { id } = await database.db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'execute_migration',
      args: { proposal_id: 'prp' },
      targets: [],
      reason: 'the host is dead',
      actionDigest: 'digest',
      stateFingerprint: 'state',
      risk: more.risk ?? 'high',
      reversible: true,
      required: more.required ?? 1,
      dryRun: { possible: true, summary: 'start 3 VMs', details: {} },
      expirySeconds: more.expirySeconds ?? 600,
      stepKey: `${incidentId}:ask`,
      replaces: null,
      actor: 'agent:incident-investigator',
    }),
  )
  return { incidentId, id }
}

/** As it is signed at Temporal: what each door makes of a token is in tokens.test.ts. */
const tokenOf = (name: string, approvalId: string, decision: Decision = 'approve') =>
  mintedToken(database.db, people[name] as Principal, approvalId, { decision }, 'temporal')

const say = (
  token: string,
  decision: 'approve' | 'deny',
  approvalId: string | null = null,
  incidentId: string | null = null,
) =>
  decide(database.db, {
    token,
    decision,
    approvalId,
    incidentId,
    reason: decision === 'deny' ? 'too risky' : null,
    caller: null,
    via: 'update',
  })

const security = async (incidentId: string) =>
  (await eventsOf(database.db, incidentId)).flatMap((event) =>
    event.kind === 'security_event' ? [event.metadata.code] : [],
  )

test('if fifty people decide at once, exactly one decision counts', async () => {
  const { id, incidentId } = await asked()
  const tokens = await Promise.all(
    Array.from({ length: 50 }, async (_, index) => {
      const name = `p${index}`
      people[name] = await signedIn(name, 'approver', await ensureOperator(database.db, name, 'approver'))
      return await tokenOf(name, id, index % 2 ? 'approve' : 'deny')
    }),
  )
  const outcomes = await Promise.all(tokens.map((token, index) => say(token, index % 2 ? 'approve' : 'deny', id)))
  expect(outcomes.filter((outcome) => outcome.outcome === 'recorded')).toHaveLength(1)
  expect(outcomes.filter((outcome) => outcome.outcome === 'conflict')).toHaveLength(49)
  const decisions = (await eventsOf(database.db, incidentId)).filter((event) => event.kind === 'approval_decided')
  expect(decisions).toHaveLength(1)
})

test('the same decision again gets the same answer, and a different decision is a conflict', async () => {
  const { id } = await asked()
  const token = await tokenOf('anna', id)
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'recorded', status: 'approved' })
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'repeated', status: 'approved' })
  expect(await say(token, 'deny', id)).toMatchObject({ outcome: 'conflict' })
})

test('a denial without a reason is a denial', async () => {
  const { id, incidentId } = await asked()
  const token = await tokenOf('anna', id, 'deny')
  expect(
    await decide(database.db, {
      token,
      decision: 'deny',
      approvalId: id,
      incidentId: null,
      reason: '  ',
      caller: null,
      via: 'signal',
    }),
  ).toMatchObject({ outcome: 'recorded', status: 'denied' })
  expect((await eventsOf(database.db, incidentId)).at(-1)).toMatchObject({ metadata: { reason: 'no reason given' } })
})

test('a token is for one verdict: with the other verdict it is used up, and leaves a row', async () => {
  const { id, incidentId } = await asked()
  const denial = await tokenOf('anna', id, 'deny')
  expect(await say(denial, 'approve', id)).toMatchObject({ outcome: 'forbidden', code: 'OTHER_VERDICT' })
  expect(await say(denial, 'deny', id)).toMatchObject({ outcome: 'forbidden', code: 'SPENT_TOKEN' })
  expect(await security(incidentId)).toEqual(['OTHER_VERDICT', 'SPENT_TOKEN'])
  expect(await say(await tokenOf('anna', id, 'deny'), 'deny', id)).toMatchObject({ status: 'denied' })
})

test('a token that is sent for another approval is used up', async () => {
  const mine = await asked()
  const other = await asked()
  for (const [approvalId, incidentId] of [
    [other.id, null],
    [null, other.incidentId],
  ] as const) {
    const token = await tokenOf('anna', mine.id)
    expect(await say(token, 'approve', approvalId, incidentId)).toMatchObject({ code: 'FOREIGN_TOKEN' })
    expect(await say(token, 'approve', mine.id)).toMatchObject({ code: 'SPENT_TOKEN' })
  }
})

test('the outcome of a request is stored with its token, and returned again', async () => {
  const { id } = await asked({ required: 2, risk: 'critical' })
  const token = await tokenOf('anna', id)
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'recorded', status: 'pending' })
  await say(await tokenOf('bert', id), 'approve', id)
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'repeated', status: 'pending' })
})

test('an approval of a person who was disabled since does not count, and their denial does', async () => {
  const disable = (name: string, isDisabled: boolean) =>
    sql`update operator set disabled_at = ${isDisabled ? sql`nightshift_now()` : null} where name = ${name}`.execute(
      database.owner,
    )
  const consume = (id: string) => database.db.transaction().execute((trx) => consumeApproval(trx, id))
  const usable = (id: string) => database.db.transaction().execute((trx) => usableApproval(trx, id))
  const [two, approved, denied] = [await asked({ required: 2, risk: 'critical' }), await asked(), await asked()]
  await say(await tokenOf('bert', two.id), 'approve', two.id)
  await say(await tokenOf('bert', approved.id), 'approve', approved.id)
  await say(await tokenOf('bert', denied.id, 'deny'), 'deny', denied.id)
  const page = { before: null, limit: 1 }
  expect((await listApprovals(systemScope(database.db), { id: two.id }, page))[0]?.approvals).toBe(1)
  await disable('bert', true)
  expect((await listApprovals(systemScope(database.db), { id: two.id }, page))[0]?.approvals).toBe(0)
  expect(await say(await tokenOf('anna', two.id), 'approve', two.id)).toMatchObject({ status: 'pending' })
  expect(await usable(approved.id)).toBeNull()
  expect(await consume(approved.id)).toBe(false)
  expect(await readDecision(database.db, denied.id)).toMatchObject({ status: 'denied' })
  await disable('bert', false)
  expect(await consume(approved.id)).toBe(true)
})

test('a standing grant counts only as much as its giver may decide when it is used', async () => {
  const given = await asked()
  const [bert, said] = [people.bert as Principal, { decision: 'approve', grant: { uses: 2, hours: 1 } } as const]
  await decide(database.db, {
    ...said,
    token: await mintedToken(database.db, bert, given.id, said),
    approvalId: given.id,
    incidentId: null,
    caller: bert.operatorId,
    via: 'page',
  })
  const run = { incidentId: await claimedIncident(database.db), attempt: 1, turn: 1 }
  const inTrx = <T>(work: (trx: Trx) => Promise<T>) => database.db.transaction().execute(work)
  const usable = () => inTrx((trx) => usableGrants(trx, 'execute_migration', run.incidentId))
  const [{ id = '' } = {}] = await usable()
  expect(await inTrx((trx) => useGrant(trx, run, id, `${id}:1`))).toBe(true)
  for (const change of [
    sql`update operator set disabled_at = nightshift_now() where name = 'bert'`,
    sql`update operator set disabled_at = null, max_risk = 'low' where name = 'bert'`,
    sql`update operator set max_risk = 'critical', incident_types = '["other_type"]' where name = 'bert'`,
  ]) {
    await change.execute(database.owner)
    expect(await usable()).toEqual([])
    expect(await inTrx((trx) => useGrant(trx, run, id, `${id}:2`))).toBe(false)
  }
  await sql`update operator set incident_types = null where name = 'bert'`.execute(database.owner)
  expect(await inTrx((trx) => useGrant(trx, run, id, `${id}:2`))).toBe(true)
})

test('an unknown token changes nothing and leaves a row', async () => {
  const { id, incidentId } = await asked()
  expect(await say('made-up', 'approve', id)).toMatchObject({ outcome: 'forbidden', code: 'UNKNOWN_TOKEN' })
  expect(await say('', 'approve', null, incidentId)).toMatchObject({ outcome: 'forbidden' })
  expect(await security(incidentId)).toEqual(['UNKNOWN_TOKEN', 'UNKNOWN_TOKEN'])
  expect(await readDecision(database.db, id)).toMatchObject({ status: 'pending' })
})

test('a token for one approval decides no other', async () => {
  const mine = await asked()
  const other = await asked()
  const [token, second] = [await tokenOf('anna', mine.id), await tokenOf('anna', mine.id)]
  expect(await say(token, 'approve', other.id)).toMatchObject({ outcome: 'forbidden', code: 'FOREIGN_TOKEN' })
  expect(await say(second, 'approve', null, other.incidentId)).toMatchObject({
    outcome: 'forbidden',
    code: 'FOREIGN_TOKEN',
  })
  expect(await readDecision(database.db, mine.id)).toMatchObject({ status: 'pending' })
  expect(await security(other.incidentId)).toEqual(['FOREIGN_TOKEN'])
})

test('a used token that is sent again for another request is recorded', async () => {
  const { id, incidentId } = await asked({ required: 2 })
  const token = await tokenOf('anna', id)
  await say(token, 'approve', id)
  await sql`delete from approval_decision where approval_id = ${id}`.execute(database.owner)
  const another = { decision: 'approve', args: { other: 'arguments' }, caller: null, via: 'update' } as const
  expect(await decide(database.db, { ...another, token, approvalId: id, incidentId: null })).toMatchObject({
    outcome: 'forbidden',
    code: 'SPENT_TOKEN',
  })
  expect(await security(incidentId)).toEqual(['SPENT_TOKEN'])
})

test('a decision after the expiry is refused, and expires the approval', async () => {
  const { id, incidentId } = await asked()
  const token = await tokenOf('anna', id)
  await sql`update approval set expires_at = nightshift_now() - interval '1 second' where id = ${id}`.execute(
    database.owner,
  )
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'gone', status: 'expired' })
  expect(await security(incidentId)).toEqual(['LATE_TOKEN'])
  expect((await eventsOf(database.db, incidentId)).map((event) => event.kind)).toContain('approval_expired')
})

test('no token is made for an agent, a viewer, or a settled approval', async () => {
  const { id } = await asked()
  const mint = async (name: string) =>
    (await mintDecisionToken(database.db, people[name] as Principal, id, { decision: 'approve' })).outcome
  expect([await mint('agent'), await mint('vera'), await mint('anna')]).toEqual(['forbidden', 'forbidden', 'minted'])
  await say(await tokenOf('anna', id, 'deny'), 'deny', id)
  expect(await mint('bert')).toBe('gone')
})

test('a person who lost the right to decide cannot use an earlier token', async () => {
  const { id } = await asked()
  const token = await tokenOf('bert', id)
  await ensureOperator(database.db, 'bert', 'viewer')
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'forbidden', code: 'ROLE_LOST' })
  await ensureOperator(database.db, 'bert', 'approver')
})

test('an approval by two people needs two different people, and one denial ends it', async () => {
  const first = await asked({ required: 2, risk: 'critical' })
  expect(await say(await tokenOf('anna', first.id), 'approve', first.id)).toMatchObject({
    outcome: 'recorded',
    status: 'pending',
  })
  expect(await say(await tokenOf('anna', first.id), 'approve', first.id)).toMatchObject({
    outcome: 'repeated',
    status: 'pending',
  })
  expect(await say(await tokenOf('bert', first.id), 'approve', first.id)).toMatchObject({ status: 'approved' })
  const second = await asked({ required: 2, risk: 'critical' })
  await say(await tokenOf('anna', second.id), 'approve', second.id)
  expect(await say(await tokenOf('bert', second.id, 'deny'), 'deny', second.id)).toMatchObject({ status: 'denied' })
})

test('the person who asked for the run cannot approve its critical actions', async () => {
  const { id, incidentId } = await asked({ required: 2, risk: 'critical' })
  await sql`update incident set requested_by = ${people.anna?.operatorId} where id = ${incidentId}`.execute(
    database.owner,
  )
  expect(await say(await tokenOf('anna', id), 'approve', id)).toMatchObject({ outcome: 'forbidden', code: 'OWN_RUN' })
})

test('a question names the people who may still approve: without those who decided, are disabled, have no right, or asked for the run', async () => {
  const { id, incidentId } = await asked({ required: 2, risk: 'critical' })
  const person = (name: string, more: Partial<Parameters<typeof putOperator>[1]>) =>
    database.db.transaction().execute((trx) =>
      putOperator(trx, {
        ...{ name, role: 'approver', maxRisk: 'critical', incidentTypes: null, disabled: false },
        ...more,
      }),
    )
  await person('carl', {})
  await person('dora', { maxRisk: 'high' })
  await person('emil', { disabled: true })
  await person('fred', { incidentTypes: ['quite_another'] })
  await say(await tokenOf('bert', id), 'approve', id)
  await sql`update incident set requested_by = ${people.anna?.operatorId} where id = ${incidentId}`.execute(
    database.owner,
  )
  // Others of this file, who would take the places of twenty.
  await sql`update operator set disabled_at = now() where name ~ '^p[0-9]'`.execute(database.owner)
  const scope = systemScope(database.db)
  const [approval] = await listApprovals(scope, { id }, { before: null, limit: 1 })
  const named = await approversOf(scope, approval as Approval)
  expect(named).toContain('carl')
  for (const name of ['anna', 'bert', 'dora', 'emil', 'fred', 'vera']) expect(named).not.toContain(name)
})

test('a denial counts for the group of its incident, and for no other', async () => {
  const [denied, sibling, stranger] = await Promise.all([asked(), asked(), asked()])
  await sql`update approval set status = 'denied', action_digest = 'denied' where id = ${denied.id}`.execute(
    database.owner,
  )
  await sql`update incident set group_id = 'grp_one' where id in (${denied.incidentId}, ${sibling.incidentId})`.execute(
    database.owner,
  )
  await sql`update incident set group_id = null where id = ${stranger.incidentId}`.execute(database.owner)
  for (const { incidentId } of [denied, sibling])
    expect(await readDenials(database.db, incidentId)).toMatchObject([{ actionDigest: 'denied' }])
  expect(await readDenials(database.db, stranger.incidentId)).toEqual([])
})

test('an approval is used once, and not after its use_by', async () => {
  const used = await asked()
  await say(await tokenOf('anna', used.id), 'approve', used.id)
  const consume = (id: string) => database.db.transaction().execute((trx) => consumeApproval(trx, id))
  expect((await Promise.all([consume(used.id), consume(used.id), consume(used.id)])).filter(Boolean)).toHaveLength(1)
  const late = await asked()
  await say(await tokenOf('anna', late.id), 'approve', late.id)
  await sql`update approval set use_by = nightshift_now() - interval '1 second' where id = ${late.id}`.execute(
    database.owner,
  )
  expect(await consume(late.id)).toBe(false)
})

test('a withdrawn approval can be neither decided nor used', async () => {
  const { id, incidentId } = await asked()
  const token = await tokenOf('anna', id)
  await database.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'drift'))
  expect(await say(token, 'approve', id)).toMatchObject({ outcome: 'gone', status: 'withdrawn' })
})

test('the token is stored only as a hash', async () => {
  const { id } = await asked()
  const token = await tokenOf('anna', id)
  await say(token, 'approve', id)
  const { rows } = await sql<{ found: number }>`
    select count(*) as found from (
      select row_to_json(t)::text as line from decision_token t
      union all select row_to_json(t)::text from approval t
      union all select row_to_json(t)::text from incident_event t
    ) lines where line like ${`%${token}%`}`.execute(database.owner)
  expect(Number(rows[0]?.found)).toBe(0)
})

test('a token from before its person was limited to lower risks decides nothing', async () => {
  const operatorId = await ensureOperator(database.db, 'nils', 'approver')
  people.nils = await signedIn('nils', 'approver', operatorId)
  const { id } = await asked({ risk: 'high' })
  const token = await tokenOf('nils', id)
  await sql`update operator set max_risk = 'medium' where id = ${operatorId}`.execute(database.owner)
  expect(await say(token, 'approve', id)).toMatchObject({
    outcome: 'forbidden',
    code: 'ROLE_LOST',
    message: expect.stringContaining('risks up to medium'),
  })
})

test('a person who changed the arguments votes for them, but only within their rights', async () => {
  const vote = (approvalId: string, name: string) =>
    database.db
      .transaction()
      .execute((trx) => voteOfEditor(trx, approvalId, { operatorId: people[name]?.operatorId ?? '', name }))
  const medium = await asked()
  await sql`update approval set risk = 'medium' where id = ${medium.id}`.execute(database.owner)
  expect(await vote(medium.id, 'nils')).toBe('approved')
  const high = await asked({ risk: 'high' })
  expect(await vote(high.id, 'nils')).toBe('pending')
  const own = await asked({ risk: 'critical' })
  await sql`update incident set requested_by = ${people.anna?.operatorId} where id = ${own.incidentId}`.execute(
    database.owner,
  )
  expect(await vote(own.id, 'anna')).toBe('pending')
})
