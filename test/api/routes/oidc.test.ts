import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { createApi } from '../../../api/app.ts'
import { createOidc, type OidcSettings } from '../../../clients/oidc.ts'
import { principalOf } from '../../../db/access/principals.ts'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import { useApi } from '../../support/api.ts'
import { moveClock } from '../../support/database.ts'
import { calmDown, type ScriptedOidc, startScriptedOidc } from '../../support/scripted-oidc.ts'
import { type Cookies, type Seen, seenOf, withCookies } from '../../support/visit.ts'

const origin = 'http://localhost'
const api = useApi()
let provider: ScriptedOidc
let app: ReturnType<typeof createApi>['app']

const settings = (change: Partial<OidcSettings> = {}): OidcSettings => ({
  issuer: provider.issuer,
  clientId: provider.clientId,
  clientSecret: provider.clientSecret,
  scopes: 'openid profile',
  groupsClaim: 'groups',
  roles: { sre: 'approver', 'sre-admins': 'admin' },
  publicUrl: origin,
  ...change,
})
const appWith = (change: Partial<OidcSettings> = {}) =>
  createApi({ db: api.db, publicUrl: origin, oidc: createOidc(settings(change)) }).app

beforeAll(async () => {
  provider = await startScriptedOidc()
  app = appWith()
})
beforeEach(() => calmDown(provider))
afterAll(() => provider.stop())

async function visit(url: string, cookies: Cookies = {}, from = app): Promise<Seen> {
  return await seenOf(await from.request(url, { headers: withCookies(cookies) }))
}

/**
 * What a browser does between our two doors: goes to the provider and comes back with an address.
 */
async function atProvider(location: string): Promise<string> {
  return (await fetch(location, { redirect: 'manual' })).headers.get('location') ?? ''
}

async function signIn({ returnTo = '', from = app }: { returnTo?: string; from?: typeof app } = {}): Promise<Seen> {
  const query = returnTo ? `?returnTo=${encodeURIComponent(returnTo)}` : ''
  const started = await visit(`${origin}/auth/oidc/start${query}`, {}, from)
  expect(started.status).toBe(303)
  return await visit(await atProvider(started.location), started.cookies, from)
}
const whoIs = async ({ cookies }: Seen) => {
  const seen = await visit(`${origin}/auth/session`, cookies)
  return seen.status === 200 ? (JSON.parse(seen.text) as { name: string; role: string }) : seen.status
}
const lastRefused = () =>
  api.db.selectFrom('audit').selectAll().where('what', '=', 'sign_in.refused').orderBy('id', 'desc').executeTakeFirst()

test('a member of a mapped group is signed in with its role, and returns to the wanted page', async () => {
  const seen = await signIn({ returnTo: '/approvals/apr_1?now=1' })
  expect([seen.status, seen.location]).toEqual([303, '/approvals/apr_1?now=1'])
  expect(await whoIs(seen)).toMatchObject({ name: 'anna', role: 'approver' })
  expect(seen.cookies['__Host-nightshift-oidc']).toBe('')
  const [entry] = (await api.get('/audit?what=sign_in')).body.items as unknown as object[]
  expect(entry).toMatchObject({
    what: 'sign_in.done',
    who: 'anna',
    detail: 'Signed in as approver, risks up to critical, all incident types',
  })
})

test('state, nonce and challenge are new for each attempt, and the secret behind them is in no address', async () => {
  const tries = [await visit(`${origin}/auth/oidc/start`), await visit(`${origin}/auth/oidc/start`)]
  const parts = tries.map(({ location }) => new URL(location).searchParams)
  for (const name of ['state', 'nonce', 'code_challenge']) {
    expect(new Set(parts.map((each) => each.get(name))).size).toBe(2)
  }
  for (const { location, cookies } of tries) {
    const secret = decodeURIComponent(cookies['__Host-nightshift-oidc'] as string).split(' ')[0] as string
    expect(secret).toMatch(/^[\w-]{43}$/)
    expect(location).not.toContain(secret)
  }
  expect(parts[0]?.get('code_challenge_method')).toBe('S256')
})

test('a callback in a browser that began no sign-in, or another one, signs nobody in', async () => {
  const mine = await visit(`${origin}/auth/oidc/start`)
  const back = await atProvider(mine.location)
  const without = await visit(back)
  expect([without.status, without.code]).toEqual([400, 'NO_SIGN_IN'])
  const other = await visit(`${origin}/auth/oidc/start`)
  const crossed = await visit(back, other.cookies)
  expect([crossed.status, crossed.code, await whoIs(crossed)]).toEqual([401, 'SIGN_IN_REFUSED', 401])
  expect(provider.asked).not.toContain('/token')
})

test('a changed state is refused before the provider is asked', async () => {
  const started = await visit(`${origin}/auth/oidc/start`)
  const back = new URL(await atProvider(started.location))
  back.searchParams.set('state', 'forged')
  expect((await visit(back.href, started.cookies)).code).toBe('SIGN_IN_REFUSED')
  expect(provider.asked).not.toContain('/token')
  expect(await lastRefused()).toMatchObject({ who: 'unknown', subject: 'oidc' })
})

test('a code works once', async () => {
  const started = await visit(`${origin}/auth/oidc/start`)
  const back = await atProvider(started.location)
  expect((await visit(back, started.cookies)).status).toBe(303)
  const again = await visit(back, started.cookies)
  expect([again.status, again.code, again.text]).toEqual([
    401,
    'SIGN_IN_REFUSED',
    expect.stringContaining('already finished'),
  ])
})

test.each<[string, () => void]>([
  ['expired', () => Object.assign(provider.mood.claims, { exp: Math.floor(Date.now() / 1000) - 3600 })],
  ['for another client', () => Object.assign(provider.mood.claims, { aud: 'another' })],
  ['of another issuer', () => Object.assign(provider.mood.claims, { iss: 'https://evil.example' })],
  ['answering another try', () => Object.assign(provider.mood.claims, { nonce: 'another' })],
  ['signed with a foreign key', () => Object.assign(provider.mood, { forged: true })],
  ['not signed at all', () => Object.assign(provider.mood, { unsigned: true })],
])('an ID token %s signs nobody in', async (_, change) => {
  change()
  const seen = await signIn()
  expect([seen.status, seen.code, await whoIs(seen)]).toEqual([401, 'SIGN_IN_REFUSED', 401])
})

test('text of the provider is not shown', async () => {
  provider.mood.denies = true
  const seen = await signIn()
  expect([seen.status, seen.text]).toEqual([401, expect.stringContaining('access_denied')])
  expect(seen.text).not.toContain('<script')
})

test('without a mapped group a sign-in is refused, and open sessions end', async () => {
  provider.mood.person = { sub: 'u-leaver', preferred_username: 'lena', groups: ['sre'] }
  const before = await signIn()
  expect(await whoIs(before)).toMatchObject({ name: 'lena' })
  provider.mood.person.groups = ['sales', 'constructor']
  const after = await signIn()
  expect([after.status, after.code]).toEqual([403, 'NO_ROLE'])
  expect(await whoIs(before)).toBe(401)
  expect(await lastRefused()).toMatchObject({ who: 'lena' })
  // A claimed name is no person of ours: it is said, and nobody is said to have done it.
  provider.mood.person = { sub: 'u-stranger', preferred_username: 'admin', groups: [] }
  await signIn()
  expect(await lastRefused()).toMatchObject({ who: 'unknown', detail: expect.stringContaining('admin') })
  provider.mood.person = { sub: 'u-leaver', preferred_username: 'lena' }
  delete provider.mood.person.groups
  expect((await signIn()).code).toBe('NO_ROLE')
  provider.mood.person.groups = ['sre']
  expect(await whoIs(await signIn())).toMatchObject({ name: 'lena' })
})

test('the strongest group decides the role, and the next sign-in can lower it in every browser', async () => {
  provider.mood.person = { sub: 'u-2', preferred_username: 'berta', groups: ['sre', 'sre-admins'] }
  const first = await signIn()
  expect(await whoIs(first)).toMatchObject({ role: 'admin' })
  provider.mood.person.groups = 'sre'
  const second = await signIn()
  expect([await whoIs(first), await whoIs(second)]).toMatchObject([{ role: 'approver' }, { role: 'approver' }])
})

test('groups are found under a path, or at the userinfo endpoint if the ID token has none', async () => {
  provider.mood.person = {
    sub: 'u-3',
    email: 'carl@example.com',
    email_verified: true,
    realm_access: { roles: ['sre'] },
  }
  const seen = await signIn({ from: appWith({ groupsClaim: 'realm_access.roles' }) })
  expect(await whoIs(seen)).toMatchObject({ name: 'carl@example.com', role: 'approver' })
  provider.mood.person = { sub: 'u-4', preferred_username: 'dora' }
  provider.mood.userinfo = { groups: ['sre'] }
  expect(await whoIs(await signIn())).toMatchObject({ name: 'dora', role: 'approver' })
})

test('a person is identified by issuer and subject, so a name that is in use is not taken over', async () => {
  await ensureOperator(api.db, 'admin', 'admin')
  provider.mood.person = { sub: 'u-evil', preferred_username: 'admin', groups: ['sre'] }
  const { name, role } = (await whoIs(await signIn())) as { name: string; role: string }
  expect([name, role]).toEqual([expect.stringMatching(/^admin-[0-9a-f]{8}$/), 'approver'])
  provider.mood.person = { sub: 'u-evil', preferred_username: 'renamed', groups: ['sre'] }
  expect(await whoIs(await signIn())).toMatchObject({ name })
  provider.mood.person = { sub: 'u-odd', preferred_username: 'system', groups: ['sre'] }
  expect(await whoIs(await signIn())).toMatchObject({ name: expect.stringMatching(/^system-/) })
})

test('a person who is called admin before an admin exists does not become admin at the next start', async () => {
  await api.owner.updateTable('operator').set({ name: 'was-admin' }).where('name', '=', 'admin').execute()
  provider.mood.person = { sub: 'u-early', preferred_username: 'admin', groups: ['sre'] }
  const seen = await signIn()
  await ensureOperator(api.db, 'admin', 'admin')
  expect(await whoIs(seen)).toMatchObject({ name: expect.stringMatching(/^admin-/), role: 'approver' })
  await api.owner.deleteFrom('operator').where('name', '=', 'admin').execute()
  await api.owner.updateTable('operator').set({ name: 'admin' }).where('name', '=', 'was-admin').execute()
})

test('two browsers of one new person at once make one person', async () => {
  provider.mood.person = { sub: 'u-twin', preferred_username: 'twin', groups: ['sre'] }
  const both = await Promise.all([signIn(), signIn()])
  expect(await Promise.all(both.map(whoIs))).toMatchObject([{ name: 'twin' }, { name: 'twin' }])
})

test('a person who was disabled here cannot sign in through the provider, and limits set here stay', async () => {
  provider.mood.person = { sub: 'u-5', preferred_username: 'emil', groups: ['sre'] }
  await signIn()
  const put = (body: object) =>
    api.put('/operators/emil', {
      body: { role: 'approver', maxRisk: 'high', incidentTypes: null, disabled: false, ...body },
    })
  expect((await put({})).status).toBe(200)
  await signIn()
  expect((await api.get('/operators/emil')).body).toMatchObject({ maxRisk: 'high', issuer: provider.issuer })
  expect((await put({ role: 'admin' })).body.code).toBe('ROLE_OF_PROVIDER')
  await put({ disabled: true })
  const seen = await signIn()
  expect([seen.status, seen.code, await whoIs(seen)]).toEqual([403, 'DISABLED', 401])
})

test.each([
  'https://evil.example/',
  '//evil.example',
  '/\\evil.example',
  '/\t/evil.example',
  'javascript:alert(1)',
  '/..//evil.example',
  '/auth/oidc/start',
  'incidents',
])('a link cannot lead the sign-in to %s', async (returnTo) => {
  expect((await signIn({ returnTo })).location).toBe('/')
})

test('while the provider is down the sign-in can be tried again, and tokens still work', async () => {
  const fresh = appWith()
  provider.mood.down = true
  expect((await visit(`${origin}/auth/oidc/start`, {}, fresh)).code).toBe('PROVIDER_UNREACHABLE')
  provider.mood.down = false
  const started = await visit(`${origin}/auth/oidc/start`, {}, fresh)
  expect(started.status).toBe(303)
  const back = await atProvider(started.location)
  for (const mood of ['down', 'broken'] as const) {
    provider.mood[mood] = true
    const seen = await visit(back, started.cookies, fresh)
    expect([seen.status, seen.code]).toEqual([503, 'PROVIDER_UNREACHABLE'])
    provider.mood[mood] = false
  }
  expect((await api.get('/incidents')).status).toBe(200)
})

test('a session through the provider ends after a week, and its token is shown to nobody', async () => {
  const seen = await signIn()
  const tokens = (await api.get('/tokens?limit=200')).body.items as unknown as {
    kind: string
    operator: string
    prefix: string
  }[]
  expect(tokens.filter(({ kind, operator }) => kind === 'sign_in' && operator === 'anna')).toMatchObject([
    { prefix: 'sign-in' },
  ])
  expect(await principalOf(api.db, 'sign-in')).toBeNull()
  await moveClock(api.owner, '8 days')
  expect(await whoIs(seen)).toBe(401)
  await moveClock(api.owner, '0 minutes')
})

test('pages can read which sign-ins exist, and without a provider its operations do not exist', async () => {
  expect(JSON.parse((await visit(`${origin}/auth/methods`)).text)).toEqual({ token: true, oidc: true })
  const plain = api.api.app as typeof app
  expect(JSON.parse((await visit(`${origin}/auth/methods`, {}, plain)).text)).toEqual({ token: true, oidc: false })
  expect((await visit(`${origin}/auth/oidc/start`, {}, plain)).status).toBe(404)
})

test('verify finds no unexplained change after actions through the product', async () => {
  const found = [...(await verifyChanges(api.db, 0)).differences, ...(await verifyKept(api.db)).differences]
  // Fixtures of tests claim incidents, and change rows as the owner.
  expect(found.filter(({ subject, what }) => !subject.startsWith('inc_') && !what.includes(' by postgres '))).toEqual(
    [],
  )
})
