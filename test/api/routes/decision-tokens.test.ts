import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { decide } from '../../../db/approvals/decide.ts'
import { withdrawPending } from '../../../db/approvals/settle.ts'
import type { SaidDecision } from '../../../db/approvals/tokens.ts'
import { eventsOf } from '../../../db/log/events.ts'
import type { TokenPurpose } from '../../../domain/approval.ts'
import type { Principal } from '../../../domain/permissions.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { mintedToken } from '../../support/decision-tokens.ts'

const api = useApi()
const origin = 'http://localhost'
const people = {} as Record<'anna' | 'lowly', { bearer: string; principal: Principal }>

beforeAll(async () => {
  for (const name of ['anna', 'lowly'] as const) {
    const operatorId = await ensureOperator(api.db, name, 'approver')
    const bearer = await createToken(api.db, { name, role: 'approver', operatorId })
    people[name] = { bearer, principal: (await principalOf(api.db, bearer)) as Principal }
  }
  await sql`update operator set max_risk = 'none', incident_types = '["nothing_at_all"]' where name = 'lowly'`.execute(
    api.owner,
  )
})

type Door = 'api' | 'page' | 'update' | 'signal'
type Shown = { as?: 'anna' | 'lowly'; approvalId?: string; said: SaidDecision }

/**
 * Shows a token at a door, as whoever holds it; answers the code of the refusal, or what the
 * decision came to.
 */
async function show(door: Door, token: string, { as = 'anna', approvalId = '', said }: Shown): Promise<string> {
  if (door === 'update' || door === 'signal') {
    const { decision, reason } = said
    const at = { approvalId, incidentId: null, token, caller: null, via: door }
    // Nothing else of a decision is read from a message at Temporal.
    const outcome = await decide(api.db, { decision, reason: reason ?? null, ...at })
    return 'code' in outcome ? outcome.code : outcome.outcome
  }
  const body = JSON.stringify({ ...said, token })
  const signed = door === 'page' ? await signedIn(people[as].bearer) : { authorization: `Bearer ${people[as].bearer}` }
  const request = { method: 'POST', body, headers: { 'content-type': 'application/json', ...signed } }
  const answer = await api.api.app.request(`${origin}/api/v1/approvals/${approvalId}/decision`, request)
  const { code, outcome } = (await answer.json()) as { code?: string; outcome?: string }
  return String(code ?? outcome)
}

async function signedIn(token: string): Promise<Record<string, string>> {
  const headers = { 'content-type': 'application/json', origin }
  const answer = await api.api.app.request(`${origin}/auth/session`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ token }),
  })
  return { origin, cookie: String(answer.headers.get('set-cookie')?.split(';')[0]) }
}

const grant = { uses: 5, hours: 8 }
const args = { id: 'db-osl-1', reason: 'chosen by somebody else' }
const yes: SaidDecision = { decision: 'approve' }

async function question() {
  const incidentId = await claimedIncident(api.db, { labels: { shard: 'db-osl-1' } })
  const id = await asked(api.db, incidentId, { tool: 'converge_shard', identity: { id: 'db-osl-1' } })
  await api.owner.updateTable('approval').set({ risk: 'medium' }).where('id', '=', id).execute()
  return { id, incidentId }
}

/** Minted by the release before, which bound nothing but the verdict. */
async function mintedBefore(id: string): Promise<string> {
  const token = await mintedToken(api.db, people.anna.principal, id, yes, 'temporal')
  await sql`update decision_token set purpose = null where approval_id = ${id}`.execute(api.owner)
  return token
}

const mint = (id: string, purpose: TokenPurpose, said = yes) =>
  mintedToken(api.db, people.anna.principal, id, said, purpose)

test.each<[string, Door, 'decision' | 'temporal' | 'before', Partial<Shown>, string]>([
  ['its own decision', 'api', 'decision', {}, 'recorded'],
  ['its own decision', 'page', 'decision', {}, 'recorded'],
  ['another person', 'page', 'decision', { as: 'lowly' }, 'FOREIGN_TOKEN'],
  ['a grant', 'page', 'decision', { said: { ...yes, grant } }, 'FOREIGN_TOKEN'],
  ['its own decision', 'update', 'temporal', {}, 'recorded'],
  ['its own decision', 'signal', 'temporal', {}, 'recorded'],
  ['its own decision', 'api', 'before', {}, 'recorded'],
  ['its own decision', 'update', 'before', {}, 'recorded'],
  ['its own decision with a reason', 'update', 'temporal', { said: { ...yes, reason: 'go' } }, 'recorded'],
  ['another person', 'api', 'decision', { as: 'lowly' }, 'FOREIGN_TOKEN'],
  ['another person', 'api', 'before', { as: 'lowly' }, 'FOREIGN_TOKEN'],
  ['another person', 'api', 'temporal', { as: 'lowly' }, 'FOREIGN_TOKEN'],
  ['another person who edits', 'api', 'decision', { as: 'lowly', said: { ...yes, args } }, 'FOREIGN_TOKEN'],
  ['another person who grants', 'api', 'before', { as: 'lowly', said: { ...yes, grant } }, 'FOREIGN_TOKEN'],
  ['an edit', 'api', 'decision', { said: { ...yes, args } }, 'FOREIGN_TOKEN'],
  ['an edit', 'api', 'before', { said: { ...yes, args } }, 'FOREIGN_TOKEN'],
  ['a grant', 'api', 'decision', { said: { ...yes, grant } }, 'FOREIGN_TOKEN'],
  ['a grant', 'api', 'before', { said: { ...yes, grant } }, 'FOREIGN_TOKEN'],
  ['a reason', 'api', 'decision', { said: { ...yes, reason: 'they agreed' } }, 'FOREIGN_TOKEN'],
  ['a category', 'api', 'decision', { said: { ...yes, category: 'other' } }, 'FOREIGN_TOKEN'],
  ['the other verdict', 'api', 'decision', { said: { decision: 'deny' } }, 'OTHER_VERDICT'],
  ['the other verdict', 'api', 'before', { said: { decision: 'deny' } }, 'OTHER_VERDICT'],
  ['the other verdict', 'update', 'temporal', { said: { decision: 'deny' } }, 'OTHER_VERDICT'],
  ['the other verdict', 'signal', 'temporal', { said: { decision: 'deny' } }, 'OTHER_VERDICT'],
  ['a door at Temporal', 'update', 'decision', {}, 'FOREIGN_TOKEN'],
  ['a door at Temporal', 'signal', 'decision', {}, 'FOREIGN_TOKEN'],
  ['the API', 'api', 'temporal', {}, 'FOREIGN_TOKEN'],
])(
  'a token shown for %s at the operation %s, made as %s: %j leads to %s',
  async (_what, door, kind, shown, expected) => {
    const { id, incidentId } = await question()
    const token = kind === 'before' ? await mintedBefore(id) : await mint(id, kind)
    expect(await show(door, token, { approvalId: id, said: yes, ...shown })).toBe(expected)
    const { body } = await api.get(`/approvals/${id}`)
    if (expected === 'recorded') return expect(body.status).toBe('approved')
    expect(body).toMatchObject({ status: 'pending', edited: null, decisions: [] })
    const codes = (await eventsOf(api.db, incidentId)).flatMap((event) =>
      event.kind === 'security_event' ? [event.metadata.code] : [],
    )
    expect(codes).toEqual([expected])
    const stored = api.db.selectFrom('decisionToken').select('usedAt').where('approvalId', '=', id)
    expect(await stored.execute()).toEqual([{ usedAt: expect.anything() }])
    expect(await api.db.selectFrom('standingGrant').selectAll().where('approvalId', '=', id).execute()).toEqual([])
  },
)

test("a person who sends another person's token is named in the log and in the audit log, with the owner of the token", async () => {
  const { id, incidentId } = await question()
  const token = await mint(id, 'decision')
  for (const code of ['FOREIGN_TOKEN', 'FOREIGN_TOKEN'])
    expect(await show('api', token, { approvalId: id, said: { ...yes, args }, as: 'lowly' })).toBe(code)
  const rows = (await eventsOf(api.db, incidentId)).filter(({ kind }) => kind === 'security_event')
  const named = { detail: 'FOREIGN_TOKEN at the door api, by lowly', metadata: { subject: 'anna', by: 'lowly' } }
  expect(rows).toMatchObject([named, named])
  const { body } = await api.get('/audit?who=lowly&what=approval.token_spent')
  const detail = 'A decision token of anna is spent without a decision: foreign'
  const items = body.items as unknown as { subject: string }[]
  expect(items.filter(({ subject }) => subject === id)).toMatchObject([{ who: 'lowly', detail }])
  const { body: security } = await api.get('/audit?who=lowly&what=security')
  const own = (security.items as unknown as { incidentId: string }[]).filter((row) => row.incidentId === incidentId)
  expect(own).toHaveLength(2)
})

test('a token contains the edit that its person made, and no other edit', async () => {
  const { id } = await question()
  const edit: SaidDecision = { decision: 'approve', args, reason: 'put right' }
  const other = await mint(id, 'decision', edit)
  expect(await show('api', other, { approvalId: id, said: { ...edit, args: { ...args, id: 'x' } } })).toBe(
    'FOREIGN_TOKEN',
  )
  const token = await mint(id, 'decision', edit)
  const at = { approvalId: id, incidentId: null, token, caller: people.anna.principal.operatorId, via: 'api' }
  expect(await decide(api.db, { ...edit, ...at })).toMatchObject({ outcome: 'recorded', status: 'withdrawn' })
  expect((await api.get(`/approvals/${id}`)).body.edited).toEqual({ by: 'anna', arguments: args })
})

test('a token of an approval that was asked again decides neither the old nor the new approval', async () => {
  const { id, incidentId } = await question()
  const token = await mint(id, 'decision')
  await api.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'drift'))
  const anew = await asked(api.db, incidentId, { tool: 'converge_shard', identity: { id: 'db-osl-1' } })
  expect(await show('api', token, { approvalId: id, said: yes })).toBe('GONE')
  expect(await show('api', token, { approvalId: anew, said: yes })).toBe('FOREIGN_TOKEN')
  expect((await api.get(`/approvals/${anew}`)).body.status).toBe('pending')
})

test.each([
  ['cut', (token: string) => token.slice(0, -1)],
  ['doubled', (token: string) => token + token],
  ['in capitals', (token: string) => token.toUpperCase()],
  ['in a URL', (token: string) => `https://nightshift.example/?token=${token}`],
  ['of another installation', () => 'VGhpcyBpcyBub3QgYSB0b2tlbiBvZiB0aGlzIG9uZS4x'],
])('a token that is %s is unknown, and the token that it was derived from stays valid', async (_what, change) => {
  const { id, incidentId } = await question()
  const token = await mint(id, 'decision')
  expect(await show('api', change(token), { approvalId: id, said: yes })).toBe('UNKNOWN_TOKEN')
  expect((await eventsOf(api.db, incidentId)).filter(({ kind }) => kind === 'security_event')).toHaveLength(1)
  expect(await show('api', token, { approvalId: id, said: yes })).toBe('recorded')
})

test('a token for Temporal is made with the verdict alone', async () => {
  const { id } = await question()
  const as = people.anna.bearer
  for (const more of [{ reason: 'go' }, { args }, { grant }, { category: 'other' }]) {
    const body = { decision: 'approve', purpose: 'temporal', ...more }
    expect((await api.post(`/approvals/${id}/token`, { as, body })).status).toBe(422)
  }
  const minted = await api.post(`/approvals/${id}/token`, { as, body: { decision: 'approve', purpose: 'temporal' } })
  expect(minted.body).toMatchObject({ decision: 'approve', purpose: 'temporal' })
})

test('a decision with a token at Temporal is shown as made there', async () => {
  const { id } = await question()
  const token = await mint(id, 'temporal', { decision: 'deny' })
  await show('update', token, { approvalId: id, said: { decision: 'deny', reason: 'backup runs' } })
  expect((await api.get(`/approvals/${id}`)).body.decisions).toMatchObject([
    { operator: 'anna', decision: 'deny', reason: 'said at Temporal: backup runs' },
  ])
})
