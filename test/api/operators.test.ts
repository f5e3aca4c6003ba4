import { describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import type { Role } from '../../domain/operator.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident, moveClock } from '../support/database.ts'

describe('operators', () => {
  const api = useApi()
  const everything = { role: 'approver', maxRisk: 'critical', incidentTypes: null, disabled: false }

  const put = (name: string, body: object) => api.put(`/operators/${name}`, { body: { ...everything, ...body } })
  async function tokenOf(operator: string, role = 'approver') {
    const { body } = await api.post('/tokens', { body: { name: `of ${operator}`, role, operator } })
    return body.token as unknown as string
  }

  test('a person is made, changed and found by name', async () => {
    expect((await put('anna', { maxRisk: 'high', incidentTypes: ['disk_pressure'] })).status).toBe(200)
    expect((await api.get('/operators/anna')).body).toMatchObject({
      ...{ name: 'anna', role: 'approver', maxRisk: 'high', incidentTypes: ['disk_pressure'], disabledAt: null },
    })
    expect((await put('anna', { role: 'viewer' })).body).toMatchObject({ role: 'viewer', maxRisk: 'critical' })
    const { items } = (await api.get('/operators')).body as unknown as { items: { name: string }[] }
    expect(items.map(({ name }) => name)).toEqual(['admin', 'anna', 'approver', 'operator', 'viewer'])
    expect((await api.get('/operators/nobody')).status).toBe(404)
  })

  test('a person is people: neither an agent, nor a sentence, nor a half-said one', async () => {
    const answers = [
      await put('berta', { role: 'agent' }),
      await put('user:admin', {}),
      await put('system', {}),
      await put(encodeURIComponent('admin approved'), {}),
      await put('berta', { incidentTypes: ['No Type'] }),
      await api.put('/operators/berta', { body: { role: 'approver' } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422, 422])
  })

  test('only an admin sees and changes people', async () => {
    for (const role of ['viewer', 'operator', 'approver', 'agent', 'ingest'] as const) {
      const as = api.tokens[role]
      expect((await api.get('/operators', { as })).status).toBe(403)
      expect((await api.put('/operators/approver', { as, body: { ...everything, role: 'admin' } })).status).toBe(403)
    }
  })

  test('nobody makes less of themselves, so that an admin remains', async () => {
    expect((await put('admin', { role: 'viewer' })).body.code).toBe('OWN_ROLE')
    expect((await put('admin', { role: 'admin', disabled: true })).body.code).toBe('OWN_ROLE')
    expect((await put('admin', { role: 'admin', maxRisk: 'high' })).body.code).toBe('OWN_ROLE')
    expect((await put('admin', { role: 'admin', incidentTypes: ['disk_pressure'] })).body.code).toBe('OWN_ROLE')
    expect((await put('admin', { role: 'admin' })).status).toBe(200)
  })

  test('nobody grants what they do not have: neither a role, nor a risk, nor a type, nor a member ID', async () => {
    const mint = async (body: object, as?: string) =>
      (await api.post('/tokens', { body, as })).body.token as unknown as string
    const as = await mint({ name: 'people alone', role: 'admin', scopes: ['manage_operators', 'read'] })
    await put('vera', { role: 'viewer', maxRisk: 'low', incidentTypes: ['disk_pressure'] })
    const tried = async (name: string, body: object, token = as) => {
      const { status, body: answer } = await api.put(`/operators/${name}`, {
        body: { ...everything, ...body },
        as: token,
      })
      return answer.code ?? status
    }
    for (const role of ['operator', 'approver', 'admin']) expect(await tried('vera', { role })).toBe('TOO_STRONG')
    for (const role of ['operator', 'approver', 'admin']) expect(await tried('new', { role })).toBe('TOO_STRONG')
    expect((await api.get('/operators/vera')).body).toMatchObject({ role: 'viewer', maxRisk: 'low' })
    expect((await api.get('/operators/new')).status).toBe(404)
    // A member of Slack acts as the person they are here: with it go the decisions of an approver.
    await put('paul', { maxRisk: 'high', incidentTypes: ['disk_pressure'] })
    const asPaul = { maxRisk: 'high', incidentTypes: ['disk_pressure'] }
    expect(await tried('paul', { ...asPaul, slackUserId: 'U012MINE' })).toBe('TOO_STRONG')
    expect(await tried('paul', { ...asPaul, maxRisk: 'critical' })).toBe('TOO_STRONG')
    expect(await tried('paul', { ...asPaul, incidentTypes: null })).toBe('TOO_STRONG')
    // Taking away, and what stays as it was, need nothing but the permission.
    expect(await tried('paul', asPaul)).toBe(200)
    expect(await tried('paul', { ...asPaul, maxRisk: 'low' })).toBe(200)
    expect(await tried('paul', { ...asPaul, maxRisk: 'low', disabled: true })).toBe(200)
    expect(await tried('paul', { ...asPaul, maxRisk: 'low' })).toBe('TOO_STRONG')
  })

  test('an admin who decides about some risks and types makes nobody who decides about more, and mints no token of one', async () => {
    await put('lena', { role: 'admin', maxRisk: 'medium', incidentTypes: ['disk_pressure'] })
    const as = await tokenOf('lena', 'admin')
    const tried = async (name: string, body: object) =>
      (await api.put(`/operators/${name}`, { body: { ...everything, ...body }, as })).status
    const own = { maxRisk: 'medium', incidentTypes: ['disk_pressure'] }
    expect(await tried('moritz', own)).toBe(200)
    expect(await tried('nils', { ...own, maxRisk: 'high' })).toBe(403)
    expect(await tried('nils', { ...own, incidentTypes: ['disk_pressure', 'replication_lag'] })).toBe(403)
    expect(await tried('lena', { role: 'admin', incidentTypes: null })).toBe(403)
    const minted = (operator: string) =>
      api.post('/tokens', { body: { name: `of ${operator}`, role: 'approver', operator }, as })
    expect((await minted('moritz')).status).toBe(201)
    expect((await minted('approver')).body.code).toBe('TOO_STRONG')
  })

  test('a decision token is minted for the risks and types of its person alone', async () => {
    await put('carl', { maxRisk: 'high', incidentTypes: ['disk_pressure'] })
    const as = await tokenOf('carl')
    const disk = await asked(api.db, await claimedIncident(api.db))
    const lag = await asked(api.db, await claimedIncident(api.db, { labels: { incident_type: 'replication_lag' } }))
    const critical = await asked(api.db, await claimedIncident(api.db))
    await api.owner.updateTable('approval').set({ risk: 'critical' }).where('id', '=', critical).execute()
    const mint = (id: string) => api.post(`/approvals/${id}/token`, { as, body: { decision: 'approve' } })
    expect((await mint(disk)).status).toBe(201)
    expect((await mint(lag)).body.detail).toBe('carl decides about incidents of other types than replication_lag')
    expect((await mint(critical)).body.detail).toBe('carl decides about risks up to high, and this one is critical')
  })

  test('who is disabled comes in nowhere, and with what they had when they are back', async () => {
    await put('dora', {})
    const as = await tokenOf('dora')
    expect((await api.get('/incidents', { as })).status).toBe(200)
    const first = (await put('dora', { disabled: true })).body.disabledAt
    expect((await api.get('/incidents', { as })).status).toBe(401)
    expect(await principalOf(api.db, as)).toBeNull()
    expect((await put('dora', { disabled: true })).body.disabledAt).toBe(first)
    await put('dora', {})
    expect((await api.get('/incidents', { as })).status).toBe(200)
  })

  test('who is to be new is never somebody who is here', async () => {
    const asNew = (body: object) =>
      api.put('/operators/frida', { headers: { 'if-none-match': '*' }, body: { ...everything, ...body } })
    expect((await asNew({ role: 'viewer' })).status).toBe(200)
    const again = await asNew({ role: 'admin' })
    expect([again.status, again.body.code]).toEqual([412, 'NAME_TAKEN'])
    expect((await api.get('/operators/frida')).body.role).toBe('viewer')
  })

  test('when somebody was last seen is told, by a token and by a browser', async () => {
    const seen = async () => (await api.get('/operators/emil')).body.lastSeenAt as unknown as string | null
    await put('emil', {})
    expect(await seen()).toBeNull()
    const as = await tokenOf('emil')
    await api.get('/incidents', { as })
    const byToken = await seen()
    expect(byToken).not.toBeNull()
    const { code } = (await (
      await api.api.app.request('/auth/codes', { method: 'POST', headers: { authorization: `Bearer ${as}` } })
    ).json()) as { code: string }
    await api.api.app.request('/auth/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'http://localhost' },
      body: JSON.stringify({ code }),
    })
    expect((await seen()) ?? '').not.toBe(byToken)
  })

  test('a change holds for the tokens that are out there', async () => {
    await put('emil', { role: 'admin' })
    const as = await tokenOf('emil', 'admin')
    expect((await api.get('/tokens', { as })).status).toBe(200)
    await put('emil', { role: 'operator' })
    expect((await api.get('/tokens', { as })).status).toBe(403)
  })

  test('the database holds no limit that code could not read', async () => {
    const set = (column: string, value: string) =>
      sql`update operator set ${sql.ref(column)} = ${sql.raw(value)}`.execute(api.owner)
    await expect(set('max_risk', "'total'")).rejects.toThrow()
    await expect(set('incident_types', `'"all"'::jsonb`)).rejects.toThrow()
  })

  test('a member of Slack is one person here, and the audit says who was made whom', async () => {
    expect((await put('dora', { slackUserId: 'U0DORA' })).body).toMatchObject({ slackUserId: 'U0DORA' })
    // What is not named stays: an older client does not take it away.
    expect((await put('dora', { maxRisk: 'high' })).body).toMatchObject({ slackUserId: 'U0DORA' })
    expect((await put('emil', { slackUserId: 'U0DORA' })).body).toMatchObject({ code: 'SLACK_USER_TAKEN' })
    expect((await put('emil', { slackUserId: '@emil' })).status).toBe(422)
    expect((await put('dora', { slackUserId: null })).body).toMatchObject({ slackUserId: null })
    expect((await put('emil', { slackUserId: 'U0DORA' })).status).toBe(200)
    const { items } = (await api.get('/audit?what=operator')).body as unknown as { items: { detail: string }[] }
    expect(items.map(({ detail }) => detail).join('\n')).toContain('U0DORA at Slack')
  })
})

describe('session', () => {
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

  test('who shows a token is signed in, with what that token may do', async () => {
    const answer = await signIn({ token: api.tokens.approver })
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ name: 'approver', role: 'approver' })
    expect(answer.body.permissions).toContain('decide')
    expect(answer.set).toMatch(/^__Host-nightshift=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
    expect((await ask('/auth/session', { cookie: answer.cookie })).body.name).toBe('approver')
    expect((await ask('/api/v1/incidents', { cookie: answer.cookie })).status).toBe(200)
  })

  test('over plain http from elsewhere the cookie is one that browsers take there', async () => {
    const at = 'http://nightshift.example'
    const answer = await signIn({ token: api.tokens.viewer }, { at, from: at })
    expect(answer.set).toMatch(/^nightshift=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    expect((await ask('/auth/session', { at, cookie: answer.cookie })).status).toBe(200)
  })

  test('a cookie may what its token may, and no more', async () => {
    const cookie = await signedIn('viewer')
    const answer = await ask('/api/v1/incidents', { method: 'POST', body: open, cookie })
    expect([answer.status, answer.body.code]).toEqual([403, 'FORBIDDEN'])
  })

  test('neither an agent nor a sender of alerts can sign in or mint a code', async () => {
    for (const role of ['agent', 'ingest'] as const) {
      const token = api.tokens[role]
      const answer = await signIn({ token })
      expect([answer.status, answer.set]).toEqual([403, ''])
      expect((await ask('/auth/codes', { method: 'POST', token })).status).toBe(403)
    }
  })

  test('a forged cookie, a forged token and a forged code open nothing', async () => {
    const forged = `__Host-nightshift=${'A'.repeat(43)}`
    expect((await ask('/auth/session', { cookie: forged })).status).toBe(401)
    expect((await ask('/api/v1/incidents', { cookie: forged })).status).toBe(401)
    expect((await signIn({ token: 'nst_forged' })).status).toBe(401)
    expect((await signIn({ code: 'nsc_forged' })).status).toBe(401)
    // Injected text is a value like any other.
    expect((await ask('/auth/session', { cookie: "__Host-nightshift=' or true--" })).status).toBe(401)
  })

  test('an unsafe request with a cookie is done for a page of ours alone', async () => {
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

  test('a session id that somebody planted is never taken over', async () => {
    const planted = `__Host-nightshift=${'P'.repeat(43)}`
    const first = await signIn({ token: api.tokens.approver }, { cookie: planted })
    expect(first.cookie).not.toBe(planted)
    expect((await ask('/auth/session', { cookie: planted })).status).toBe(401)
    // Signing in again ends the session that was there before.
    const second = await signIn({ token: api.tokens.admin }, { cookie: first.cookie })
    expect((await ask('/auth/session', { cookie: first.cookie })).status).toBe(401)
    expect((await ask('/auth/session', { cookie: second.cookie })).body.name).toBe('admin')
  })

  test('signing out ends the session on the server too', async () => {
    const cookie = await signedIn('operator')
    expect((await ask('/auth/session', { method: 'DELETE', cookie })).status).toBe(204)
    expect((await ask('/api/v1/incidents', { cookie })).status).toBe(401)
  })

  test('a session ends after twelve quiet hours, and lives on while it is used, for a week at most', async () => {
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

  test('a signed-in browser cannot mint a code for another', async () => {
    const cookie = await signedIn('admin')
    expect((await ask('/auth/codes', { method: 'POST', cookie })).status).toBe(401)
  })

  test('neither ids of sessions nor codes are stored in plain', async () => {
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
})
