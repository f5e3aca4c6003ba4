import { describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { failedAuthentications, networkOf } from '../../api/http/rate-limits.ts'
import { principalOf } from '../../db/access/principals.ts'
import { countAttempt } from '../../db/access/rate-limits.ts'
import { ensureOperator } from '../../db/access/tokens.ts'
import type { Role } from '../../domain/operator.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident, moveClock, openedIncident } from '../support/database.ts'

describe('attempts', () => {
  const api = useApi()
  const limit = failedAuthentications.attempts

  type Sent = { from: string; token?: string; path?: string; method?: string; body?: object; cookie?: string }
  async function knock({ from, token, path = '/api/v1/incidents', method = 'GET', body, cookie }: Sent) {
    const response = await api.api.app.request(
      `http://localhost${path}`,
      {
        method,
        headers: {
          ...(token && { authorization: `Bearer ${token}` }),
          ...(cookie && { cookie }),
          'content-type': 'application/json',
        },
        ...(body && { body: JSON.stringify(body) }),
      },
      { incoming: { socket: { remoteAddress: from, remotePort: 1, remoteFamily: 'IPv4' } } },
    )
    return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() }
  }
  const times = async (n: number, sent: Sent) => {
    const statuses: number[] = []
    for (let i = 0; i < n; i++) statuses.push((await knock(sent)).status)
    return statuses
  }
  const crossings = async (subject: string) =>
    await api.db
      .selectFrom('audit')
      .selectAll()
      .where('what', '=', 'security.too_many_attempts')
      .where('subject', '=', subject)
      .execute()

  test('who shows wrong tokens again and again is told to wait, and for how long', async () => {
    const from = '192.0.2.1'
    expect(new Set(await times(limit, { from, token: 'nst_wrong' }))).toEqual(new Set([401]))
    const answer = await knock({ from, token: 'nst_wrong' })
    expect(answer).toMatchObject({ status: 429, body: { code: 'TOO_MANY_ATTEMPTS', title: 'Too many attempts' } })
    expect(Number(answer.retryAfter)).toBeGreaterThan(200)
    await times(3, { from, token: 'other nonsense' })
    expect(await crossings(from)).toMatchObject([{ who: 'unknown', address: from }])
    expect((await knock({ from: '192.0.2.2', token: 'nst_wrong' })).status).toBe(401)
  })

  test('a good token is let in from where others fail, so that nobody locks a colleague out', async () => {
    const from = '192.0.2.3'
    await times(limit + 1, { from, token: 'nst_wrong' })
    expect((await knock({ from, token: api.tokens.viewer })).status).toBe(200)
    const signIn = { from, path: '/auth/session', method: 'POST' }
    expect((await knock({ ...signIn, body: { token: api.tokens.viewer } })).status).toBe(200)
    expect((await knock({ ...signIn, body: { token: 'nst_wrong' } })).status).toBe(429)
  })

  test('wrong tokens and codes at the sign-in count like any, and are written down until there are too many', async () => {
    const from = '192.0.2.4'
    const shown = { from, path: '/auth/session', method: 'POST' }
    await times(limit / 2, { ...shown, body: { token: 'nst_wrong' } })
    await times(limit / 2, { ...shown, body: { code: 'nsc_wrong' } })
    expect(await times(2, { ...shown, body: { code: 'nsc_wrong' } })).toEqual([429, 429])
    expect((await knock({ from, path: '/auth/codes', method: 'POST', token: 'nst_wrong' })).status).toBe(429)
    const refused = await api.db
      .selectFrom('audit')
      .selectAll()
      .where('what', '=', 'sign_in.refused')
      .where('address', '=', from)
      .execute()
    expect(refused).toHaveLength(limit)
  })

  test('a page that was left open with a session that is over is no attack', async () => {
    const from = '192.0.2.5'
    const cookie = `__Host-nightshift=${'A'.repeat(43)}`
    expect(new Set(await times(limit + 5, { from, cookie }))).toEqual(new Set([401]))
    expect(new Set(await times(limit + 5, { from, path: '/auth/session' }))).toEqual(new Set([401]))
  })

  test('a sender of alerts never reads 429, which it would not repeat: 503, and a mended token is taken at once', async () => {
    const from = '192.0.2.6'
    const alerts = { from, path: '/api/v1/ingest/alertmanager', method: 'POST', body: { version: '4', alerts: [] } }
    expect(new Set(await times(limit, { ...alerts, token: 'nst_wrong' }))).toEqual(new Set([401]))
    const answer = await knock({ ...alerts, token: 'nst_wrong' })
    expect([answer.status, Number(answer.retryAfter) > 0]).toEqual([503, true])
    expect([401, 429, 503]).not.toContain((await knock({ ...alerts, token: api.tokens.ingest })).status)
  })

  test('a person may try to decide one approval so often, and another one all the same', async () => {
    const first = await asked(api.db, await claimedIncident(api.db))
    const second = await asked(api.db, await claimedIncident(api.db))
    const decide = (id: string, as = api.tokens.approver) =>
      api.post(`/approvals/${id}/decision`, { body: { decision: 'approve', token: 'guess' }, as })
    for (let n = 0; n < 20; n++) expect((await decide(first)).status).toBe(403)
    const answer = await decide(first)
    expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([429, true])
    expect(
      (await api.post(`/approvals/${first}/token`, { as: api.tokens.approver, body: { decision: 'approve' } })).status,
    ).toBe(429)
    expect((await decide(first, api.tokens.admin)).status).toBe(403)
    expect((await decide(second)).status).toBe(403)
    expect(await crossings(first)).toMatchObject([{ who: 'approver' }])
    await moveClock(api.owner, '61 seconds')
    expect((await decide(first)).status).toBe(403)
    await moveClock(api.owner, '0 minutes')
  })

  test('tries at once are counted one by one, and a new window begins when the old one is over', async () => {
    const three = { attempts: 3, seconds: 60 }
    const counted = await Promise.all(Array.from({ length: 10 }, () => countAttempt(api.db, 'race', three)))
    expect(counted.filter(({ over }) => !over)).toHaveLength(3)
    expect(counted.filter((each) => each.over && each.first)).toHaveLength(1)
    await moveClock(api.owner, '2 hours')
    expect(await countAttempt(api.db, 'race', three)).toEqual({ over: false })
    await countAttempt(api.db, 'another', three)
    expect(await api.db.selectFrom('attempt').select('subject').orderBy('subject').execute()).toEqual([
      { subject: 'another' },
      { subject: 'race' },
    ])
    await moveClock(api.owner, '0 minutes')
  })

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['unknown', 'unknown'],
  ])('%s counts as %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})

describe('tokens', () => {
  const api = useApi()

  async function mint(body: Record<string, unknown>, as?: string) {
    const answer = await api.post('/tokens', { body: { name: 'a test', ...body }, as })
    return { ...answer, token: answer.body.token as unknown as string, id: answer.body.id as unknown as string }
  }
  const reads = async (token: string) => (await api.get('/incidents', { as: token })).status

  test('a minted token is shown once, works, and is stored as a hash', async () => {
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

  test('nothing is stored of it under an idempotency key either', async () => {
    const body = { name: 'twice', role: 'viewer' }
    const both = [await api.post('/tokens', { body, key: 'k1' }), await api.post('/tokens', { body, key: 'k1' })]
    expect(new Set(both.map((each) => each.body.token)).size).toBe(2)
  })

  test('a token ends after 90 days unless another time was asked', async () => {
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

  test('nobody revokes the token they are using', async () => {
    const own = await principalOf(api.db, api.tokens.admin)
    expect((await api.post(`/tokens/${own?.tokenId}/revoke`)).body.code).toBe('OWN_TOKEN')
  })

  test('only an admin mints, lists and revokes', async () => {
    for (const role of ['viewer', 'operator', 'approver', 'agent', 'ingest'] as Role[]) {
      const as = api.tokens[role]
      expect([role, (await mint({ role: 'viewer' }, as)).status]).toEqual([role, 403])
      expect([role, (await api.get('/tokens', { as })).status]).toEqual([role, 403])
      expect([role, (await api.post('/tokens/tok_x/revoke', { as })).status]).toEqual([role, 403])
    }
  })

  test("a token cannot make more of its person than the person is, or a person of a machine's", async () => {
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

  test('who was made less is less with every token of before', async () => {
    await ensureOperator(api.db, 'otto', 'approver')
    const { token } = await mint({ role: 'approver', operator: 'otto' })
    await ensureOperator(api.db, 'otto', 'viewer')
    expect(await principalOf(api.db, token)).toMatchObject({ role: 'viewer', name: 'otto' })
  })

  test("what a token is called is not who acts: rows say the person's name", async () => {
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

  test('a token for reading reads, whatever its role could', async () => {
    const { token } = await mint({ role: 'admin', scopes: ['read'] })
    expect(await reads(token)).toBe(200)
    const answer = await api.put('/config/agent.paused', { body: { value: 'true' }, as: token })
    expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining('scopes of this token')])
  })

  test('a token for minting alone mints nothing that could do more than it', async () => {
    const { token } = await mint({ role: 'admin', scopes: ['manage_tokens'] })
    expect((await mint({ role: 'admin' }, token)).body.code).toBe('TOO_STRONG')
    expect((await mint({ role: 'ingest' }, token)).body.code).toBe('TOO_STRONG')
    expect((await mint({ role: 'admin', scopes: ['manage_tokens'] }, token)).status).toBe(201)
  })

  test('a token for one incident type changes incidents of that type and nothing else', async () => {
    const { token: as } = await mint({ role: 'admin', scopes: ['type:disk_pressure'] })
    const disk = await openedIncident(api.db)
    const lag = await openedIncident(api.db, { labels: { incident_type: 'replication_lag' } })
    const body = { reason: 'planned work' }
    expect((await api.post(`/incidents/${disk}/cancel`, { body, as })).status).toBe(200)
    expect((await api.post(`/incidents/${lag}/cancel`, { body, as })).body.code).toBe('OUT_OF_SCOPE')
    expect((await api.post(`/incidents/${disk}%2F..%2F${lag}/cancel`, { body, as })).status).toBe(403)
    const open = (type: string) =>
      api.post('/incidents', { body: { type, severity: 'info', title: 'Is all well?' }, as })
    expect([(await open('disk_pressure')).status, (await open('replication_lag')).status]).toEqual([201, 403])
    expect((await api.post('/agent', { body: { question: 'Is all well?' }, as })).body.code).toBe('OUT_OF_SCOPE')
    // What is about no incident is closed: the platform, the settings, other tokens, alerts.
    for (const path of ['/shards/s1/converge', '/tokens', '/ingest/generic', '/capability-gaps']) {
      expect([path, (await api.post(path, { body: {}, as })).status]).toEqual([path, 403])
    }
    expect((await api.get(`/incidents/${lag}`, { as })).status).toBe(200)
  })

  test('a token for one incident type decides about that type alone', async () => {
    const { token: as } = await mint({ role: 'admin', scopes: ['type:disk_pressure'] })
    const disk = await asked(api.db, await claimedIncident(api.db))
    const lag = await asked(api.db, await claimedIncident(api.db, { labels: { incident_type: 'replication_lag' } }))
    expect((await api.post(`/approvals/${disk}/token`, { as, body: { decision: 'approve' } })).status).toBe(201)
    expect((await api.post(`/approvals/${lag}/token`, { as, body: { decision: 'approve' } })).body.code).toBe(
      'OUT_OF_SCOPE',
    )
  })

  test('a browser may no more than the narrowed token it signed in with', async () => {
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

  test('when a token was last used is written once a minute', async () => {
    const { token, id } = await mint({ role: 'viewer' })
    const used = async () =>
      (await api.db.selectFrom('apiToken').select('lastUsedAt').where('id', '=', id).executeTakeFirstOrThrow())
        .lastUsedAt
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
})
