import { createHmac } from 'node:crypto'
import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, beforeEach, expect, jest, test } from '@jest/globals'
import { createApi } from '../../../api/app.ts'
import { createOidc } from '../../../clients/oidc.ts'
import { useApi } from '../../support/api.ts'
import { freePort } from '../../support/directory.ts'
import {
  type Forger,
  type RealOidc,
  type SigningKey,
  signed,
  signingKey,
  startRealOidc,
  throughIssuer,
} from '../../support/scripted-oidc.ts'
import { type Cookies, type Seen, seenOf, withCookies } from '../../support/visit.ts'

// Everything here is real and over HTTP: the issuer, and two servers of ours on one database.
const api = useApi()
let key: SigningKey
let foreign: SigningKey
let issuer: RealOidc
let other: RealOidc
let home: string
let second: string
const servers: Server[] = []

async function served(publicUrl: string, port: number, from: RealOidc): Promise<string> {
  const oidc = createOidc({
    issuer: from.issuer,
    clientId: from.clientId,
    clientSecret: from.clientSecret,
    publicUrl,
    scopes: 'openid profile email',
    groupsClaim: 'groups',
    roles: { sre: 'approver', admins: 'admin' } as const,
  })
  const { app } = createApi({ db: api.db, publicUrl, oidc })
  servers.push(serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }) as Server)
  return `http://127.0.0.1:${port}`
}

beforeAll(async () => {
  // The issuer recommends what tests have no use for.
  for (const level of ['info', 'warn'] as const) jest.spyOn(console, level).mockImplementation(() => {})
  const port = await freePort()
  home = `http://127.0.0.1:${port}`
  const callback = `${home}/auth/oidc/callback`
  key = await signingKey('first')
  foreign = await signingKey('foreign')
  issuer = await startRealOidc(callback, key)
  other = await startRealOidc(callback, foreign)
  await served(home, port, issuer)
  // Another process behind the same public address.
  second = await served(home, await freePort(), issuer)
})
beforeEach(async () => {
  for (const each of [issuer, other]) {
    each.person = { sub: 'u-1', preferred_username: 'anna', groups: ['sre'] }
    each.forger = null
  }
  // Failed sign-ins are counted by network, and every one of this file comes from this machine.
  await api.owner.deleteFrom('attempt').execute()
})

afterAll(async () => {
  for (const server of servers) server.close()
  await issuer?.stop()
  await other?.stop()
})

async function visit(url: string, cookies: Cookies = {}, more: RequestInit = {}): Promise<Seen> {
  const headers = { ...withCookies(cookies), ...(more.headers as object) }
  return await seenOf(await fetch(url, { redirect: 'manual', ...more, headers }))
}

const start = (query = '') => visit(`${home}/auth/oidc/start${query}`)
/**
 * Begins a sign-in, goes through the issuer, and answers the way back with the cookies of the
 * browser.
 */
async function wayBack(query = ''): Promise<{ back: URL; cookies: Cookies }> {
  const started = await start(query)
  return { back: new URL(await throughIssuer(started.location)), cookies: started.cookies }
}
async function signIn(query = ''): Promise<Seen> {
  const { back, cookies } = await wayBack(query)
  return await visit(back.href, cookies)
}
async function whoIs(cookies: Cookies, at = home): Promise<unknown> {
  const seen = await visit(`${at}/auth/session`, cookies)
  return seen.status === 200 ? JSON.parse(seen.text) : seen.status
}
const sessions = async () => (await api.db.selectFrom('session').select('sha256').execute()).length

test('a member of a mapped group signs in, with name and groups that only the userinfo endpoint returns', async () => {
  const seen = await signIn('?returnTo=/approvals')
  expect([seen.status, seen.location]).toEqual([303, '/approvals'])
  expect(await whoIs(seen.cookies)).toMatchObject({ name: 'anna', role: 'approver' })
})

test('a sign-in that one process began is completed by another, once', async () => {
  const { back, cookies } = await wayBack()
  const there = `${second}${back.pathname}${back.search}`
  const both = await Promise.all([visit(there, cookies), visit(back.href, cookies)])
  expect(both.map(({ status }) => status).sort()).toEqual([303, 401])
  const winner = both.find(({ status }) => status === 303) as Seen
  expect([await whoIs(winner.cookies), await whoIs(winner.cookies, second)]).toMatchObject([
    { name: 'anna' },
    { name: 'anna' },
  ])
  // The code is used: neither process takes it again.
  expect([(await visit(there, cookies)).code, (await visit(back.href, cookies)).code]).toEqual([
    'SIGN_IN_REFUSED',
    'SIGN_IN_REFUSED',
  ])
})

test.each<[string, (back: URL, mine: Cookies) => Promise<[string, Cookies]>]>([
  ['the cookie of another browser', async (back) => [back.href, (await start()).cookies]],
  ['no cookie', async (back) => [back.href, {}]],
  ['a state of its own', async (back, mine) => [withParam(back, 'state', 'forged'), mine]],
  ['two states', async (back, mine) => [`${back.href}&state=${back.searchParams.get('state')}`, mine]],
  ['two codes', async (back, mine) => [`${back.href}&code=another`, mine]],
  ['no state', async (back, mine) => [withParam(back, 'state', null), mine]],
  ['the name of another issuer', async (back, mine) => [withParam(back, 'iss', other.issuer), mine]],
  ['no name of its issuer, which sends one', async (back, mine) => [withParam(back, 'iss', null), mine]],
  ['a token of its own beside the code', async (back, mine) => [`${back.href}&id_token=e30.e30.&response=x`, mine]],
  [
    'the code of another browser',
    async (back, mine) => [withParam(back, 'code', (await wayBack()).back.searchParams.get('code')), mine],
  ],
])('a callback with %s signs nobody in', async (_, change) => {
  const before = await sessions()
  const { back, cookies } = await wayBack()
  const [url, jar] = await change(back, cookies)
  const seen = await visit(url, jar)
  expect([400, 401]).toContain(seen.status)
  expect(['NO_SIGN_IN', 'SIGN_IN_REFUSED']).toContain(seen.code)
  expect([await whoIs(seen.cookies), await sessions()]).toEqual([401, before])
})

function withParam(url: URL, name: string, value: string | null): string {
  const changed = new URL(url)
  if (value === null) changed.searchParams.delete(name)
  else changed.searchParams.set(name, value)
  return changed.href
}

test('a code of another issuer signs nobody in, even if everything else is right', async () => {
  const started = await start()
  const elsewhere = new URL(started.location)
  const mixedUp = await throughIssuer(`${other.issuer}${elsewhere.pathname}${elsewhere.search}`)
  const relabelled = withParam(new URL(mixedUp), 'iss', issuer.issuer)
  for (const url of [mixedUp, relabelled]) expect((await visit(url, started.cookies)).code).toBe('SIGN_IN_REFUSED')
})

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
function byHmac(alg: string, claims: object, secret: string, header: object = {}): string {
  const said = `${encoded({ alg, kid: 'first', ...header })}.${encoded(claims)}`
  return `${said}.${createHmac('sha256', secret).update(said).digest('base64url')}`
}
const seconds = (later: number) => Math.floor(Date.now() / 1000) + later

test.each<[string, Forger]>([
  ['without a signature', ({ claims }) => `${encoded({ alg: 'none' })}.${encoded(claims)}.`],
  [
    'without a signature, in other letters',
    ({ claims }) => `${encoded({ alg: 'nOnE', kid: 'first' })}.${encoded(claims)}.`,
  ],
  ['signed with the secret of the client', ({ claims }) => byHmac('HS256', claims, issuer.clientSecret)],
  ['signed with the public key as a secret', ({ claims }) => byHmac('HS256', claims, JSON.stringify(publicOf(key)))],
  ['that brings its own key', async ({ claims }) => byHmac('RS256', claims, 'x', { jwk: publicOf(foreign) })],
  ['signed by a foreign key under the name of ours', ({ claims }) => signed(claims, { ...foreign, kid: 'first' })],
  ['signed by a key that nobody published', ({ claims }) => signed(claims, foreign)],
  ['with other claims under the old signature', ({ text, claims }) => resigned(text, { ...claims, sub: 'u-admin' })],
  ['for another client', ({ claims }) => signed({ ...claims, aud: 'another' }, key)],
  [
    'for several clients, of which another asked',
    ({ claims }) => signed({ ...claims, aud: ['nightshift', 'b'], azp: 'b' }, key),
  ],
  ['of another issuer', ({ claims }) => signed({ ...claims, iss: other.issuer }, key)],
  ['answering another try', ({ claims }) => signed({ ...claims, nonce: 'another' }, key)],
  ['without a nonce', ({ claims: { nonce: _, ...rest } }) => signed(rest, key)],
  ['that is over', ({ claims }) => signed({ ...claims, exp: seconds(-120) }, key)],
  ['without an end', ({ claims: { exp: _, ...rest } }) => signed(rest, key)],
  ['that does not hold yet', ({ claims }) => signed({ ...claims, nbf: seconds(300) }, key)],
  ['without a subject', ({ claims: { sub: _, ...rest } }) => signed(rest, key)],
  ['about somebody else than the userinfo', ({ claims }) => signed({ ...claims, sub: 'u-2' }, key)],
  ['that is no token', () => 'x'],
])('an ID token %s signs nobody in', async (_, forger) => {
  const before = await sessions()
  issuer.forger = forger
  const seen = await signIn()
  expect([seen.status, seen.code, await whoIs(seen.cookies)]).toEqual([401, 'SIGN_IN_REFUSED', 401])
  expect(await sessions()).toBe(before)
})

function publicOf({ jwk }: SigningKey): object {
  const { kty, n, e, kid } = jwk as Record<string, string>
  return { kty, n, e, kid }
}
function resigned(text: string, claims: object): string {
  const [header, , signature] = text.split('.')
  return `${header}.${encoded(claims)}.${signature}`
}

test('an unchanged signed ID token is accepted, so the tests above fail for their own reason', async () => {
  issuer.forger = ({ claims }) => signed(claims, key)
  expect(await whoIs((await signIn()).cookies)).toMatchObject({ name: 'anna' })
})

test('an unverified e-mail address is not used as a name', async () => {
  issuer.person = {
    sub: 'u-mallory',
    email: 'boss@example.com',
    email_verified: false,
    name: 'Mallory M',
    groups: ['sre'],
  }
  expect(await whoIs((await signIn()).cookies)).toMatchObject({ name: 'Mallory-M' })
  issuer.person = { sub: 'u-silent', email: 'chief@example.com', groups: ['sre'] }
  expect(await whoIs((await signIn()).cookies)).toMatchObject({ name: 'person' })
  issuer.person = { sub: 'u-true', email: 'true@example.com', email_verified: true, groups: ['sre'] }
  expect(await whoIs((await signIn()).cookies)).toMatchObject({ name: 'true@example.com' })
})

test('claims about roles grant only what the mapping says', async () => {
  const roleOf = async (groups: unknown, more: object = {}) => {
    issuer.person = { sub: 'u-roles', preferred_username: 'rolf', groups, ...more }
    const seen = await signIn()
    return seen.status === 303 ? ((await whoIs(seen.cookies)) as { role: string }).role : seen.code
  }
  for (const groups of [
    'admin',
    ['admin'],
    ['Admins'],
    ['admins '],
    ['__proto__'],
    [['admins']],
    { admins: true },
    [{ name: 'admins' }],
    null,
    7,
    'sre,admins',
  ]) {
    expect([groups, await roleOf(groups, { role: 'admin', roles: ['admin'], permissions: ['*'] })]).toEqual([
      groups,
      'NO_ROLE',
    ])
  }
  expect(await roleOf(['sre', 'admin'])).toBe('approver')
  expect(await roleOf(['sre', 'admins'])).toBe('admin')
  expect(await roleOf(['sre'])).toBe('approver')
})

test('a session id that another person planted is replaced at sign-in, and the planted session ends', async () => {
  const planted = (await signIn()).cookies
  const { back, cookies } = await wayBack()
  const after = await visit(back.href, { ...planted, ...cookies })
  expect(after.cookies['__Host-nightshift']).not.toBe(planted['__Host-nightshift'])
  expect([await whoIs(planted), await whoIs(after.cookies)]).toMatchObject([401, { name: 'anna' }])
  const made = await visit(back.href, { ...cookies, '__Host-nightshift': 'chosen-by-mallory' })
  expect([made.status, await whoIs({ '__Host-nightshift': 'chosen-by-mallory' })]).toEqual([401, 401])
})

test('a disabled person stays out at every process, even with a valid sign-in of the issuer', async () => {
  issuer.person = { sub: 'u-dis', preferred_username: 'dieter', groups: ['admins'] }
  const before = await signIn()
  expect(await whoIs(before.cookies, second)).toMatchObject({ role: 'admin' })
  await api.owner
    .updateTable('operator')
    .set({ disabledAt: new Date().toISOString() })
    .where('name', '=', 'dieter')
    .execute()
  expect([await whoIs(before.cookies), await whoIs(before.cookies, second), (await signIn()).code]).toEqual([
    401,
    401,
    'DISABLED',
  ])
})

test.each([
  '//evil.example',
  '/%5cevil.example',
  '/%09/evil.example',
  'https://evil.example',
  '/.//evil.example',
  '/%2e%2e//evil.example',
])(
  'a link with %s leads to no foreign address after the sign-in, and neither does a changed cookie',
  async (returnTo) => {
    const { back, cookies } = await wayBack(`?returnTo=${returnTo}&returnTo=//evil.example`)
    const { location } = await visit(back.href, cookies)
    expect(new URL(location, home).origin).toBe(home)
    const { back: again, cookies: jar } = await wayBack()
    const [secret] = decodeURIComponent(Object.values(jar)[0] ?? '').split(' ')
    const changed = {
      [Object.keys(jar)[0] as string]: encodeURIComponent(`${secret} ${decodeURIComponent(returnTo)}`),
    }
    expect(new URL((await visit(again.href, changed)).location, home).origin).toBe(home)
  },
)

test('a foreign page signs nobody out, and a page of Nightshift signs out at every process', async () => {
  const { cookies } = await signIn()
  const leave = (headers: Record<string, string>) =>
    visit(`${home}/auth/session`, cookies, { method: 'DELETE', headers })
  expect([(await leave({})).status, (await leave({ origin: 'https://evil.example' })).status]).toEqual([403, 403])
  expect(await whoIs(cookies, second)).toMatchObject({ name: 'anna' })
  expect((await leave({ origin: home })).status).toBe(204)
  expect([await whoIs(cookies), await whoIs(cookies, second)]).toEqual([401, 401])
})

test('after the issuer replaced its key, a server that knew only the old key accepts the new one', async () => {
  const next = await signingKey('next')
  issuer.rotate(next)
  const fresh = await served(home, await freePort(), issuer)
  const started = await visit(`${fresh}/auth/oidc/start`)
  const back = new URL(await throughIssuer(started.location))
  const seen = await visit(`${fresh}${back.pathname}${back.search}`, started.cookies)
  expect(await whoIs(seen.cookies)).toMatchObject({ name: 'anna' })
  issuer.forger = ({ claims }) => signed(claims, key)
  const old = await visit(`${fresh}/auth/oidc/start`)
  const again = new URL(await throughIssuer(old.location))
  expect((await visit(`${fresh}${again.pathname}${again.search}`, old.cookies)).code).toBe('SIGN_IN_REFUSED')
})
