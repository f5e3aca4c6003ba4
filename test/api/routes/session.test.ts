import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Role } from '../../../domain/permissions.ts'
import { useApi } from '../../support/api.ts'
import { moveClock } from '../../support/database.ts'

const api = useApi()
const origin = 'http://localhost'

type Sent = { method?: string; body?: unknown; cookie?: string; from?: string | null; token?: string; at?: string }

async function ask(path: string, { method = 'GET', body, cookie, from = origin, token, at = origin }: Sent = {}) {
  const response = await api.api.app.request(`${at}${path}`, {
    method,
    headers: {
      ...(from !== null && { origin: from }),
      ...(cookie && { cookie }),
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const set = response.headers.get('set-cookie') ?? ''
  return { status: response.status, body: text ? JSON.parse(text) : null, set, cookie: set.split(';')[0] as string }
}

const signIn = (shown: object, more: Sent = {}) => ask('/auth/session', { method: 'POST', body: shown, ...more })
const signedIn = async (role: Role) => (await signIn({ token: api.tokens[role] })).cookie
const open = { type: 'question', severity: 'info', title: 'Is all well?' }

test('a person who shows a token is signed in with the rights of the token', async () => {
  const answer = await signIn({ token: api.tokens.approver })
  expect(answer.status).toBe(200)
  expect(answer.body).toMatchObject({ name: 'approver', role: 'approver' })
  expect(answer.body.permissions).toContain('decide')
  expect(answer.set).toMatch(/^__Host-nightshift=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
  expect((await ask('/auth/session', { cookie: answer.cookie })).body.name).toBe('approver')
  expect((await ask('/api/v1/incidents', { cookie: answer.cookie })).status).toBe(200)
})

test('over plain HTTP from another machine the cookie is one that browsers accept there', async () => {
  const at = 'http://nightshift.example'
  const answer = await signIn({ token: api.tokens.viewer }, { at, from: at })
  expect(answer.set).toMatch(/^nightshift=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
  expect((await ask('/auth/session', { at, cookie: answer.cookie })).status).toBe(200)
})

test('a cookie has only the rights of its token', async () => {
  const cookie = await signedIn('viewer')
  const answer = await ask('/api/v1/incidents', { method: 'POST', body: open, cookie })
  expect([answer.status, answer.body.code]).toEqual([403, 'FORBIDDEN'])
})

test('agents and senders of alerts can neither sign in nor make a sign-in code', async () => {
  for (const role of ['agent', 'ingest'] as const) {
    const token = api.tokens[role]
    const answer = await signIn({ token })
    expect([answer.status, answer.set]).toEqual([403, ''])
    expect((await ask('/auth/codes', { method: 'POST', token })).status).toBe(403)
  }
})

test('a forged cookie, a forged token and a forged code are refused', async () => {
  const forged = `__Host-nightshift=${'A'.repeat(43)}`
  expect((await ask('/auth/session', { cookie: forged })).status).toBe(401)
  expect((await ask('/api/v1/incidents', { cookie: forged })).status).toBe(401)
  expect((await signIn({ token: 'nst_forged' })).status).toBe(401)
  expect((await signIn({ code: 'nsc_forged' })).status).toBe(401)
  // Injected text is a value like any other.
  expect((await ask('/auth/session', { cookie: "__Host-nightshift=' or true--" })).status).toBe(401)
})

test('an unsafe request with a cookie is accepted only from a page of Nightshift', async () => {
  const cookie = await signedIn('admin')
  const post = (from: string | null) => ask('/api/v1/incidents', { method: 'POST', body: open, cookie, from })
  for (const from of ['https://evil.example', 'null', 'http://localhost:1', null]) {
    const answer = await post(from)
    expect([answer.status, answer.body.code]).toEqual([403, 'FOREIGN_ORIGIN'])
  }
  expect((await post(origin)).status).toBe(201)
  expect((await ask('/auth/session', { method: 'DELETE', cookie, from: 'https://evil.example' })).status).toBe(403)
  expect((await signIn({ token: api.tokens.admin }, { from: 'https://evil.example' })).status).toBe(403)
})

test('a planted session id is never adopted', async () => {
  const planted = `__Host-nightshift=${'P'.repeat(43)}`
  const first = await signIn({ token: api.tokens.approver }, { cookie: planted })
  expect(first.cookie).not.toBe(planted)
  expect((await ask('/auth/session', { cookie: planted })).status).toBe(401)
  // Signing in again ends the session that was there before.
  const second = await signIn({ token: api.tokens.admin }, { cookie: first.cookie })
  expect((await ask('/auth/session', { cookie: first.cookie })).status).toBe(401)
  expect((await ask('/auth/session', { cookie: second.cookie })).body.name).toBe('admin')
})

test('signing out also ends the session on the server', async () => {
  const cookie = await signedIn('operator')
  expect((await ask('/auth/session', { method: 'DELETE', cookie })).status).toBe(204)
  expect((await ask('/api/v1/incidents', { cookie })).status).toBe(401)
})

test('a session ends after twelve idle hours, and after at most a week in use', async () => {
  const quiet = await signedIn('operator')
  const lively = await signedIn('operator')
  try {
    await moveClock(api.owner, '11 hours')
    expect((await ask('/auth/session', { cookie: lively })).status).toBe(200)
    await moveClock(api.owner, '13 hours')
    expect((await ask('/auth/session', { cookie: quiet })).status).toBe(401)
    for (let hours = 22; hours < 168; hours += 11) {
      await moveClock(api.owner, `${hours} hours`)
      await ask('/auth/session', { cookie: lively })
    }
    await moveClock(api.owner, '169 hours')
    expect((await ask('/auth/session', { cookie: lively })).status).toBe(401)
  } finally {
    await moveClock(api.owner, '0 minutes')
  }
})

test('a session ends with its token', async () => {
  const cookie = await signedIn('viewer')
  await api.owner
    .updateTable('apiToken')
    .set({ revokedAt: sql`nightshift_now()` as never })
    .where('name', '=', 'viewer')
    .execute()
  expect((await ask('/api/v1/incidents', { cookie })).status).toBe(401)
  await api.owner.updateTable('apiToken').set({ revokedAt: null }).where('name', '=', 'viewer').execute()
})

test('a sign-in code works once, for ten minutes', async () => {
  const mint = async () => (await ask('/auth/codes', { method: 'POST', token: api.tokens.admin })).body.code as string
  const code = await mint()
  const both = await Promise.all([signIn({ code }), signIn({ code })])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
  const late = await mint()
  await moveClock(api.owner, '11 minutes')
  expect((await signIn({ code: late })).status).toBe(401)
  await moveClock(api.owner, '0 minutes')
})

test('a browser session cannot make a code for another browser', async () => {
  const cookie = await signedIn('admin')
  expect((await ask('/auth/codes', { method: 'POST', cookie })).status).toBe(401)
})

test('session ids and codes are not stored in plain text', async () => {
  const cookie = await signedIn('admin')
  const { body } = await ask('/auth/codes', { method: 'POST', token: api.tokens.admin })
  const rows = JSON.stringify([
    await api.owner.selectFrom('session').selectAll().execute(),
    await api.owner.selectFrom('signInCode').selectAll().execute(),
  ])
  expect(rows).not.toContain(cookie.split('=')[1])
  expect(rows).not.toContain(body.code)
})

test('a form of a foreign page cannot sign anybody in', async () => {
  const response = await api.api.app.request(`${origin}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `token=${api.tokens.admin}`,
  })
  expect(response.status).toBe(415)
})
