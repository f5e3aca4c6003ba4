import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../../db/access/principals.ts'
import { ensureOperator } from '../../../db/access/tokens.ts'
import type { Role } from '../../../domain/permissions.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, moveClock, openedIncident } from '../../support/database.ts'

const api = useApi()

async function mint(body: Record<string, unknown>, as?: string) {
  const answer = await api.post('/tokens', { body: { name: 'a test', ...body }, as })
  return { ...answer, token: answer.body.token as unknown as string, id: answer.body.id as unknown as string }
}
const reads = async (token: string) => (await api.get('/incidents', { as: token })).status

test('a new token is shown once, works, and is stored as a hash', async () => {
  const { status, token, body, id } = await mint({ name: 'laptop', role: 'viewer' })
  expect(status).toBe(201)
  expect(token).toMatch(/^nst_[\w-]{43}$/)
  expect(body).toMatchObject({ name: 'laptop', role: 'viewer', operator: 'admin', prefix: `${token.slice(0, 8)}…` })
  expect(await reads(token)).toBe(200)
  const list = (await api.get('/tokens')).body.items as unknown as { id: string; lastUsedAt: string | null }[]
  expect(list[0]).toMatchObject({ id, lastUsedAt: expect.any(String), revokedAt: null })
  expect(JSON.stringify(list)).not.toMatch(/sha256|nst_\w{5}/)
  for (const table of ['apiToken', 'idempotency'] as const) {
    expect(JSON.stringify(await api.owner.selectFrom(table).selectAll().execute())).not.toContain(token)
  }
})

test('no token is stored under an idempotency key', async () => {
  const body = { name: 'twice', role: 'viewer' }
  const both = [await api.post('/tokens', { body, key: 'k1' }), await api.post('/tokens', { body, key: 'k1' })]
  expect(new Set(both.map((each) => each.body.token)).size).toBe(2)
})

test('a token expires after 90 days unless another time was requested', async () => {
  const quarter = await mint({ role: 'viewer' })
  const week = await mint({ role: 'viewer', expiresInDays: 7 })
  const machine = await mint({ role: 'ingest', expiresInDays: null })
  try {
    await moveClock(api.owner, '8 days')
    expect([await reads(quarter.token), await reads(week.token)]).toEqual([200, 401])
    await moveClock(api.owner, '91 days')
    expect(await reads(quarter.token)).toBe(401)
    expect((await principalOf(api.db, machine.token))?.role).toBe('ingest')
  } finally {
    await moveClock(api.owner, '0 minutes')
  }
})

test('a revoked token opens nothing, and neither does the browser that signed in with it', async () => {
  const { token, id } = await mint({ role: 'operator' })
  const signedIn = await api.api.app.request('http://localhost/auth/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] as string
  expect((await api.get('/incidents', { as: '', headers: { cookie } })).status).toBe(200)
  const revoked = await api.post(`/tokens/${id}/revoke`)
  expect(revoked.body).toMatchObject({ id, revokedAt: expect.any(String) })
  expect(await reads(token)).toBe(401)
  expect((await api.get('/incidents', { as: '', headers: { cookie } })).status).toBe(401)
  // Again is no mistake, and keeps the time of the first.
  expect((await api.post(`/tokens/${id}/revoke`)).body.revokedAt).toBe(revoked.body.revokedAt)
  expect((await api.post('/tokens/tok_none/revoke')).status).toBe(404)
})

test('nobody can revoke the token they are using', async () => {
  const own = await principalOf(api.db, api.tokens.admin)
  expect((await api.post(`/tokens/${own?.tokenId}/revoke`)).body.code).toBe('OWN_TOKEN')
})

test('only an admin makes, lists and revokes tokens', async () => {
  for (const role of ['viewer', 'operator', 'approver', 'agent', 'ingest'] as Role[]) {
    const as = api.tokens[role]
    expect([role, (await mint({ role: 'viewer' }, as)).status]).toEqual([role, 403])
    expect([role, (await api.get('/tokens', { as })).status]).toEqual([role, 403])
    expect([role, (await api.post('/tokens/tok_x/revoke', { as })).status]).toEqual([role, 403])
  }
})

test('a token cannot raise the rights of its person, or make a machine a person', async () => {
  await ensureOperator(api.db, 'vera', 'viewer')
  const refused = [
    await mint({ role: 'approver', operator: 'vera' }),
    await mint({ role: 'agent', operator: 'vera' }),
    await mint({ role: 'viewer', operator: 'nobody' }),
    await mint({ role: 'viewer', expiresInDays: null }),
    await mint({ role: 'viewer', scopes: ['decide'] }),
    await mint({ role: 'agent', scopes: ['type:disk_pressure'] }),
    await mint({ role: 'superuser' }),
    await mint({ name: 'a\u001b[31m', role: 'viewer' }),
  ]
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 422))
  const { token } = await mint({ role: 'agent' })
  expect(await principalOf(api.db, token)).toMatchObject({ role: 'agent', operatorId: null })
})

test('a person whose rights were lowered has lower rights with every earlier token', async () => {
  await ensureOperator(api.db, 'otto', 'approver')
  const { token } = await mint({ role: 'approver', operator: 'otto' })
  await ensureOperator(api.db, 'otto', 'viewer')
  expect(await principalOf(api.db, token)).toMatchObject({ role: 'viewer', name: 'otto' })
})

test('rows name the person of a token, whatever the name of the token is', async () => {
  await ensureOperator(api.db, 'otto', 'operator')
  const { token } = await mint({ name: 'admin', role: 'operator', operator: 'otto' })
  const id = await openedIncident(api.db)
  await api.post(`/incidents/${id}/cancel`, { body: { reason: 'planned work' }, as: token })
  const { actor } = await api.db
    .selectFrom('incidentEvent')
    .select('actor')
    .where('incidentId', '=', id)
    .where('kind', '=', 'cancelled')
    .executeTakeFirstOrThrow()
  expect(actor).toBe('user:otto')
})

test('a token for reading can only read, whatever its role could do', async () => {
  const { token } = await mint({ role: 'admin', scopes: ['read'] })
  expect(await reads(token)).toBe(200)
  const answer = await api.put('/config/agent.paused', { body: { value: 'true' }, as: token })
  expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining("this token's scopes")])
})

test('a token for making tokens makes no token with more rights than it has', async () => {
  const { token } = await mint({ role: 'admin', scopes: ['manage_tokens'] })
  expect((await mint({ role: 'admin' }, token)).body.code).toBe('TOO_STRONG')
  expect((await mint({ role: 'ingest' }, token)).body.code).toBe('TOO_STRONG')
  expect((await mint({ role: 'admin', scopes: ['manage_tokens'] }, token)).status).toBe(201)
})

test('a token for one incident type changes only incidents of that type', async () => {
  const { token: as } = await mint({ role: 'admin', scopes: ['type:disk_pressure'] })
  const disk = await openedIncident(api.db)
  const lag = await openedIncident(api.db, { labels: { incident_type: 'replication_lag' } })
  const body = { reason: 'planned work' }
  expect((await api.post(`/incidents/${disk}/cancel`, { body, as })).status).toBe(200)
  expect((await api.post(`/incidents/${lag}/cancel`, { body, as })).body.code).toBe('OUT_OF_SCOPE')
  expect((await api.post(`/incidents/${disk}%2F..%2F${lag}/cancel`, { body, as })).status).toBe(403)
  const open = (type: string) => api.post('/incidents', { body: { type, severity: 'info', title: 'Is all well?' }, as })
  expect([(await open('disk_pressure')).status, (await open('replication_lag')).status]).toEqual([201, 403])
  expect((await api.post('/agent', { body: { question: 'Is all well?' }, as })).body.code).toBe('OUT_OF_SCOPE')
  // Anything outside of incidents is closed: the platform, the settings, other tokens, alerts.
  for (const path of ['/shards/s1/converge', '/tokens', '/ingest/generic', '/capability-gaps']) {
    expect([path, (await api.post(path, { body: {}, as })).status]).toEqual([path, 403])
  }
  expect((await api.get(`/incidents/${lag}`, { as })).status).toBe(200)
})

test('a token for one incident type decides only about that type', async () => {
  const { token: as } = await mint({ role: 'admin', scopes: ['type:disk_pressure'] })
  const disk = await asked(api.db, await claimedIncident(api.db))
  const lag = await asked(api.db, await claimedIncident(api.db, { labels: { incident_type: 'replication_lag' } }))
  expect((await api.post(`/approvals/${disk}/token`, { as, body: { decision: 'approve' } })).status).toBe(201)
  expect((await api.post(`/approvals/${lag}/token`, { as, body: { decision: 'approve' } })).body.code).toBe(
    'OUT_OF_SCOPE',
  )
})

test('a browser has no more rights than the narrowed token it signed in with', async () => {
  const { token } = await mint({ role: 'admin', scopes: ['read'] })
  const answer = await api.api.app.request('http://localhost/auth/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  expect(await answer.json()).toMatchObject({ name: 'admin', permissions: ['read'] })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] as string
  const headers = { cookie, origin: 'http://localhost' }
  expect((await mintWith(headers)).status).toBe(403)
})

const mintWith = (headers: Record<string, string>) =>
  api.post('/tokens', { body: { name: 'x', role: 'viewer' }, as: '', headers })

test('the last use of a token is stored once a minute', async () => {
  const { token, id } = await mint({ role: 'viewer' })
  const used = async () =>
    (await api.db.selectFrom('apiToken').select('lastUsedAt').where('id', '=', id).executeTakeFirstOrThrow()).lastUsedAt
  await reads(token)
  const first = await used()
  await reads(token)
  expect(await used()).toBe(first)
  await api.owner
    .updateTable('apiToken')
    .set({ lastUsedAt: sql`nightshift_now() - interval '2 minutes'` as never })
    .where('id', '=', id)
    .execute()
  await reads(token)
  expect(Date.parse((await used()) as string)).toBeGreaterThanOrEqual(Date.parse(first as string))
})
