import { expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, moveClock } from '../../support/database.ts'

const api = useApi()

async function minted(
  approvalId: string,
  as = api.tokens.approver,
  decision = 'approve',
  reason: string | null = null,
): Promise<string> {
  const answer = await api.post(`/approvals/${approvalId}/token`, {
    as,
    key: `mint-${approvalId}-${decision}`,
    body: { decision, reason },
  })
  expect(answer.status).toBe(201)
  return answer.body.token as unknown as string
}

const decide = (
  approvalId: string,
  token: string,
  decision = 'approve',
  reason: string | null = null,
  as = api.tokens.approver,
) => api.post(`/approvals/${approvalId}/decision`, { body: { decision, token, reason }, as })

async function securityCodes(incidentId: string) {
  const events = await eventsOf(api.db, incidentId)
  return events.flatMap((event) => (event.kind === 'security_event' ? [event.metadata.code] : []))
}

test('an approval is recorded for the person of the token, and the run is woken', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId)
  expect((await api.get('/approvals?status=pending')).body.items).toMatchObject([{ id, status: 'pending' }])
  const answer = await decide(id, await minted(id))
  expect(answer.body).toEqual({ outcome: 'recorded', status: 'approved', approvalId: id, incidentId })
  expect(api.told.at(-1)).toEqual({ signal: 'decided', incidentId, attempt: 1 })
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({
    status: 'approved',
    decisions: [{ operator: 'approver', decision: 'approve', via: 'api' }],
  })
})

test('a decision token is not stored in plain text, not even under an idempotency key', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const token = await minted(id)
  const stored = await api.db.selectFrom('idempotency').selectAll().execute()
  expect(JSON.stringify(stored)).not.toContain(token)
})

test('a decision is stored even if the run cannot be reached', async () => {
  api.runs.answer = 'unreached'
  const id = await asked(api.db, await claimedIncident(api.db))
  expect((await decide(id, await minted(id))).status).toBe(200)
  api.runs.answer = 'told'
})

test('the same decision again gets the same answer, and a different decision is a conflict', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const token = await minted(id)
  await decide(id, token)
  expect((await decide(id, token)).body).toMatchObject({ outcome: 'repeated', status: 'approved' })
  const contrary = await decide(id, token, 'deny', 'on second thought')
  expect([contrary.status, contrary.body.approvalStatus]).toEqual([409, 'approved'])
})

test('a forged, foreign or used token decides nothing and leaves a row', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId, { required: 2 })
  const other = await asked(api.db, await claimedIncident(api.db))
  expect((await decide(id, 'forged')).status).toBe(403)
  expect((await decide(id, await minted(other))).status).toBe(403)
  expect(await securityCodes(incidentId)).toEqual(['UNKNOWN_TOKEN', 'FOREIGN_TOKEN'])
  expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
})

test('a late decision is refused, and the approval is expired', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId, { expirySeconds: 60 })
  const token = await minted(id)
  await moveClock(api.owner, '2 minutes')
  const answer = await decide(id, token)
  const minting = await api.post(`/approvals/${id}/token`, { as: api.tokens.approver, body: { decision: 'approve' } })
  await moveClock(api.owner, '0 minutes')
  expect([answer.status, answer.body.approvalStatus]).toEqual([410, 'expired'])
  expect(minting.status).toBe(410)
  expect(await securityCodes(incidentId)).toEqual(['LATE_TOKEN'])
})

test('a denial without a reason counts, and says that no reason was given', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const token = await minted(id, api.tokens.approver, 'deny')
  expect((await decide(id, token, 'deny')).body).toMatchObject({ outcome: 'recorded', status: 'denied' })
  expect((await api.get(`/approvals/${id}`)).body.decisions).toMatchObject([{ reason: 'no reason given' }])
})

test('a wrong form does not use up a token', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const token = await minted(id)
  const as = api.tokens.approver
  for (const body of [
    { decision: 'maybe', token },
    { decision: 'approve', token, args: 'all' },
    { decision: 'approve', token, surprise: 1 },
  ]) {
    expect((await api.post(`/approvals/${id}/decision`, { body, as })).status).toBeGreaterThanOrEqual(400)
  }
  expect((await api.post(`/approvals/${id}/token`, { as })).status).toBeGreaterThanOrEqual(400)
  expect((await decide(id, token)).body).toMatchObject({ outcome: 'recorded', status: 'approved' })
})

test('a grant that the tool does not allow is refused, and does not use up the token', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const as = api.tokens.approver
  const said = { decision: 'approve', grant: { uses: 3, hours: 2 } }
  const { token } = (await api.post(`/approvals/${id}/token`, { as, body: said })).body
  const body = { ...said, token }
  expect((await api.post(`/approvals/${id}/decision`, { body, as })).body.code).toBe('NOT_GRANTABLE')
  expect(await api.db.selectFrom('decisionToken').select('usedAt').where('approvalId', '=', id).execute()).toEqual([
    { usedAt: null },
  ])
})

test('a token for a denial cannot approve, and the attempt uses it up', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId)
  const token = await minted(id, api.tokens.approver, 'deny')
  const answer = await decide(id, token)
  expect([answer.status, answer.body.code]).toEqual([403, 'OTHER_VERDICT'])
  expect((await decide(id, token, 'deny')).body.code).toBe('SPENT_TOKEN')
  expect(await securityCodes(incidentId)).toEqual(['OTHER_VERDICT', 'SPENT_TOKEN'])
  expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
})

test('an approval by two people needs two different people', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { required: 2 })
  expect((await decide(id, await minted(id))).body.status).toBe('pending')
  expect((await decide(id, await minted(id))).body).toMatchObject({ outcome: 'repeated', status: 'pending' })
  expect((await decide(id, await minted(id, api.tokens.admin), 'approve', null, api.tokens.admin)).body.status).toBe(
    'approved',
  )
})

test('if fifty people decide at once, exactly one decision counts', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId)
  const people: { as: string; token: string }[] = []
  for (let n = 0; n < 50; n++) {
    const operatorId = await ensureOperator(api.db, `person-${n}`, 'approver')
    const as = await createToken(api.db, { name: `person-${n}`, role: 'approver', operatorId })
    people.push({ as, token: n % 2 ? await minted(id, as, 'deny', 'no') : await minted(id, as) })
  }
  const answers = await Promise.all(
    people.map(({ as, token }, n) => decide(id, token, n % 2 ? 'deny' : 'approve', n % 2 ? 'no' : null, as)),
  )
  expect(answers.filter(({ body }) => body.outcome === 'recorded')).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(49)
  const rows = (await eventsOf(api.db, incidentId)).filter((event) => event.kind === 'approval_decided')
  expect(rows).toHaveLength(1)
})

test('an unknown approval is not found', async () => {
  expect((await api.get('/approvals/apr_none')).status).toBe(404)
  expect((await api.post('/approvals/apr_none/token', { body: { decision: 'approve' } })).status).toBe(404)
})

test('"not now" needs a time within the next day and a denial, and a wrong request does not use up the token', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const said = (decision: string, hours: number) => ({
    decision,
    reason: 'not at night',
    askAgainAt: new Date(Date.now() + hours * 3_600_000).toISOString(),
  })
  const send = async (body: object) => {
    const { token } = (await api.post(`/approvals/${id}/token`, { body, as: api.tokens.approver })).body
    return await api.post(`/approvals/${id}/decision`, { body: { ...body, token }, as: api.tokens.approver })
  }
  for (const wrong of [said('deny', -1), said('deny', 30), said('approve', 7)])
    expect((await send(wrong)).body).toMatchObject({ status: 422, errors: [{ field: 'askAgainAt' }] })
  expect((await send(said('deny', 7))).body).toMatchObject({ status: 'denied' })
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({
    decisions: [{ reason: expect.stringMatching(/^not before \d{4}-.* UTC: not at night$/) }],
  })
})
