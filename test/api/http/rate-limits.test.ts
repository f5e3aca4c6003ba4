import { expect, test } from '@jest/globals'
import { failedAuthentications, networkOf } from '../../../api/http/rate-limits.ts'
import { countAttempt } from '../../../db/access/rate-limits.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, moveClock } from '../../support/database.ts'

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

test('a client that sends wrong tokens again and again is told to wait, and for how long', async () => {
  const from = '192.0.2.1'
  expect(new Set(await times(limit, { from, token: 'nst_wrong' }))).toEqual(new Set([401]))
  const answer = await knock({ from, token: 'nst_wrong' })
  expect(answer).toMatchObject({ status: 429, body: { code: 'TOO_MANY_ATTEMPTS', title: 'Too many attempts' } })
  expect(Number(answer.retryAfter)).toBeGreaterThan(200)
  await times(3, { from, token: 'other nonsense' })
  expect(await crossings(from)).toMatchObject([{ who: 'unknown', address: from }])
  expect((await knock({ from: '192.0.2.2', token: 'nst_wrong' })).status).toBe(401)
})

test('a valid token is accepted from an address where others fail, so that nobody can lock a colleague out', async () => {
  const from = '192.0.2.3'
  await times(limit + 1, { from, token: 'nst_wrong' })
  expect((await knock({ from, token: api.tokens.viewer })).status).toBe(200)
  const signIn = { from, path: '/auth/session', method: 'POST' }
  expect((await knock({ ...signIn, body: { token: api.tokens.viewer } })).status).toBe(200)
  expect((await knock({ ...signIn, body: { token: 'nst_wrong' } })).status).toBe(429)
})

test('wrong tokens and codes at the sign-in are counted, and logged until there are too many', async () => {
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

test('a page that was left open with an expired session does not count as an attack', async () => {
  const from = '192.0.2.5'
  const cookie = `__Host-nightshift=${'A'.repeat(43)}`
  expect(new Set(await times(limit + 5, { from, cookie }))).toEqual(new Set([401]))
  expect(new Set(await times(limit + 5, { from, path: '/auth/session' }))).toEqual(new Set([401]))
})

test('a sender of alerts gets 503 and never 429, which it would not repeat, and a corrected token is accepted at once', async () => {
  const from = '192.0.2.6'
  const alerts = { from, path: '/api/v1/ingest/alertmanager', method: 'POST', body: { version: '4', alerts: [] } }
  expect(new Set(await times(limit, { ...alerts, token: 'nst_wrong' }))).toEqual(new Set([401]))
  const answer = await knock({ ...alerts, token: 'nst_wrong' })
  expect([answer.status, Number(answer.retryAfter) > 0]).toEqual([503, true])
  expect([401, 429, 503]).not.toContain((await knock({ ...alerts, token: api.tokens.ingest })).status)
})

test("a person's attempts to decide one approval are limited, and another approval has its own limit", async () => {
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

test('parallel attempts are counted one by one, and a new window begins when the old one is over', async () => {
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
