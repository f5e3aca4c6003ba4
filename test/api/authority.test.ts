import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import { openSession, principalOfSession } from '../../db/access/sessions.ts'
import { createToken } from '../../db/access/tokens.ts'
import { mintDecisionToken } from '../../db/approvals/tokens.ts'
import { sha256 } from '../../domain/digest.ts'
import { type Permission, permission, permissions } from '../../domain/permissions.ts'
import { createSlackClient } from '../../notify/slack/client.ts'
import { buttonValue, signatureOf } from '../../notify/slack/interaction.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'

const origin = 'http://localhost'
const signingSecret = '0123456789abcdef0123456789abcdef'
const workspace = { botToken: 'xoxb-1', signingSecret, channel: 'C0OPS', apiUrl: 'http://127.0.0.1:9' }
const api = useApi(() => ({ slack: createSlackClient(workspace), publicUrl: origin }))
const machines = ['agent', 'ingest'] as const

/**
 * What leads to authority over runs, settings or people; whatever is added to the list of
 * permissions is, until it is said not to be.
 */
const harmless: Permission[] = ['read', 'record', 'act_on_platform', 'ingest']
const authority = permission.options.filter((each) => !harmless.includes(each))

type Operation = { 'x-permission': Permission }
async function documented() {
  const document = (await (await api.api.app.request('/openapi.json')).json()) as {
    paths: Record<string, Record<string, Operation>>
  }
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      permission: operation['x-permission'],
    })),
  )
}

async function knock(method: string, path: string, headers: Record<string, string>, body?: string) {
  const response = await api.api.app.request(`${origin}${path}`, {
    method,
    headers: { origin, 'content-type': 'application/json', ...headers },
    ...(method !== 'GET' && { body: body ?? '{}' }),
  })
  await response.body?.cancel()
  return { status: response.status, cookie: response.headers.get('set-cookie') }
}

test('no machine token has a permission to decide, mint tokens, configure or read about people', () => {
  expect(authority).toEqual(
    expect.arrayContaining(['decide', 'write_config', 'manage_tokens', 'manage_operators', 'manage_incident', 'audit']),
  )
  for (const role of machines) expect(permissions[role].filter((each) => authority.includes(each))).toEqual([])
})

test('every operation that leads to authority is closed to an agent and to a sender of alerts', async () => {
  const doors = (await documented()).filter(({ permission }) => authority.includes(permission))
  expect(doors.length).toBeGreaterThanOrEqual(18)
  for (const role of machines) {
    for (const { method, path } of doors) {
      const answer = await knock(method, path.replace(/\{\w+\}/g, 'x'), {
        authorization: `Bearer ${api.tokens[role]}`,
      })
      expect([role, method, path, answer]).toEqual([role, method, path, { status: 403, cookie: null }])
    }
  }
})

test('scopes that somebody wrote into the database give a machine no authority either', async () => {
  const doors = (await documented()).filter(({ permission }) => authority.includes(permission))
  for (const role of machines) {
    const token = await createToken(api.db, { name: role, role, operatorId: null, scopes: permission.options })
    for (const { method, path } of doors) {
      const { status } = await knock(method, path.replace(/\{\w+\}/g, 'x'), { authorization: `Bearer ${token}` })
      expect([role, method, path, status]).toEqual([role, method, path, 403])
    }
  }
})

test('the API has no operations outside its document except those of a known list', async () => {
  const inDocument = new Set(
    (await documented()).map(({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
  )
  const beside = api.api.app.routes
    .map(({ method, path }) => `${method} ${path}`)
    .filter((each) => !each.startsWith('ALL ') && !inDocument.has(each))
  expect([...new Set(beside)].sort()).toEqual(
    [
      // Pages and health, which tell and change nothing.
      'GET /',
      'GET /approvals/:id',
      // By a session alone; tried below.
      'GET /approvals/:id/plain',
      'GET /auth/methods',
      'GET /auth/session',
      'GET /docs',
      'GET /incidents/:id',
      'GET /livez',
      'GET /metrics',
      'GET /openapi.json',
      'GET /readyz',
      'DELETE /auth/session',
      'POST /approvals/:id/plain',
      'POST /auth/codes',
      'POST /auth/session',
      // By a token of a device's enrolment alone, which gives what that device may be asked; tried
      // in devices.test.ts.
      'GET /mesh/authority',
      'POST /mesh/enrolments',
      'POST /mesh/manifests',
      // By a signature with the secret of a destination alone; tried in destinations.test.ts.
      'POST /api/v1/ingest/pagerduty/:name',
      // By a signature of Slack's alone; tried below.
      'POST /slack/events',
      'POST /slack/interactions',
    ].sort(),
  )
})

test('a machine token cannot sign in a browser, make a sign-in code or decide by a form', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const role of machines) {
    const token = api.tokens[role]
    const authorization = `Bearer ${token}`
    const tries = [
      await knock('POST', '/auth/session', {}, JSON.stringify({ token })),
      await knock('POST', '/auth/codes', { authorization }),
      await knock('POST', `/approvals/${id}/plain`, form, `token=${token}`),
      await knock('POST', `/approvals/${id}/plain`, { ...form, authorization }, 'decision=approve&sure=yes'),
      await knock('GET', `/approvals/${id}/plain`, { authorization }),
      await knock('GET', '/auth/session', { authorization }),
    ]
    expect([role, tries.map(({ status }) => status)]).toEqual([role, [403, 403, 403, 401, 401, 401]])
    expect(tries.every(({ cookie }) => cookie === null)).toBe(true)
  }
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({ status: 'pending', decisions: [] })
})

test('a machine token cannot press a button in Slack, and neither can an unknown Slack user', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const { actionDigest } = (await api.get(`/approvals/${id}`)).body as unknown as { actionDigest: string }
  const payload = JSON.stringify({
    type: 'block_actions',
    user: { id: 'U0AGENT' },
    trigger_id: '1',
    channel: { id: 'C0OPS' },
    container: { message_ts: '1.1' },
    actions: [{ action_id: 'approve', value: buttonValue(signingSecret, { id, actionDigest }) }],
  })
  const body = new URLSearchParams({ payload }).toString()
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const role of machines) {
    const authorization = `Bearer ${api.tokens[role]}`
    expect((await knock('POST', '/slack/interactions', { ...form, authorization }, body)).status).toBe(401)
  }
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signed = {
    'x-slack-request-timestamp': timestamp,
    'x-slack-signature': signatureOf(signingSecret, timestamp, body),
  }
  expect((await knock('POST', '/slack/interactions', { ...form, ...signed }, body)).status).toBe(200)
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({ status: 'pending', decisions: [] })
})

test('behind the operations, no session, decision token or person can come from a machine token', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  for (const role of machines) {
    const principal = await principalOf(api.db, api.tokens[role])
    if (!principal) throw new Error('the token is good')
    expect((await mintDecisionToken(api.db, principal, id, { decision: 'approve' })).outcome).toBe('forbidden')
    expect(await openSession(api.db, principal.tokenId)).toBeNull()
    // A session that got into the database by another way opens nothing.
    await sql`insert into session (sha256, token_id, expires_at)
      values (${sha256(`planted ${role}`)}, ${principal.tokenId}, now() + interval '1 day')`.execute(api.owner)
    expect(await principalOfSession(api.db, `planted ${role}`)).toBeNull()
    await expect(
      sql`update api_token set operator_id = (select id from operator limit 1) where id = ${principal.tokenId}`.execute(
        api.owner,
      ),
    ).rejects.toThrow()
  }
})

test('a decision token that a machine sends decides nothing at the API', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const { token } = (
    await api.post(`/approvals/${id}/token`, { as: api.tokens.approver, body: { decision: 'approve' } })
  ).body
  for (const role of machines) {
    const answer = await api.post(`/approvals/${id}/decision`, {
      body: { decision: 'approve', token },
      as: api.tokens[role],
    })
    expect([role, answer.status]).toEqual([role, 403])
  }
  expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
})

test('a form has the limits of the API: the types of its token and the number of attempts', async () => {
  const lag = await asked(api.db, await claimedIncident(api.db, { labels: { incident_type: 'replication_lag' } }))
  const narrowed = (await api.post('/tokens', { body: { name: 'x', role: 'admin', scopes: ['type:disk_pressure'] } }))
    .body.token
  const decide = async (token: unknown) => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const path = `/approvals/${lag}/plain`
    const { cookie } = await knock('POST', path, form, `token=${token}`)
    return async () =>
      (await knock('POST', path, { ...form, cookie: cookie?.split(';')[0] as string }, 'decision=approve&sure=yes'))
        .status
  }
  const again = await decide(narrowed)
  for (let n = 0; n < 20; n++) expect(await again()).toBe(403)
  expect(await again()).toBe(429)
  expect((await api.get(`/approvals/${lag}`)).body.status).toBe('pending')
})
