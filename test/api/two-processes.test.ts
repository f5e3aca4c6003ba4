import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createApi } from '../../api/app.ts'
import { connect, type Db } from '../../db/connect.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

// Two servers with connections of their own on one database, as behind a balancer: what one knows,
// the other knows.
const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const urls: string[] = []
const servers: Server[] = []
const pools: Db[] = []

beforeAll(async () => {
  for (const _ of [1, 2]) {
    const db = connect(api.url, { max: 5 })
    const { app } = createApi({ db, platform })
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    if (!server.listening) await once(server, 'listening')
    pools.push(db)
    servers.push(server)
    urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  }
})
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  await Promise.all(pools.map((pool) => pool.destroy()))
})

type Sent = { status: number; body: Record<string, unknown>; replayed: string | null }

async function post(at: number, path: string, body: object, more: { key?: string; as?: string } = {}): Promise<Sent> {
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${more.as ?? api.tokens.admin}`,
    ...(more.key && { 'idempotency-key': more.key }),
  }
  const answer = await fetch(`${urls[at % 2]}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const replayed = answer.headers.get('idempotency-replayed')
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown>, replayed }
}
const many = <T>(count: number, work: (at: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, at) => work(at)))

test('a write under one key that reaches both servers many times at once is done once', async () => {
  let calls = 0
  const { converge } = platform
  platform.converge = (...asked) => {
    calls += 1
    return converge(...asked)
  }
  // Each server has read the platform.
  const headers = { authorization: `Bearer ${api.tokens.admin}` }
  await many(2, (at) => fetch(`${urls[at]}/api/v1/shards/db-osl-1/nodes`, { headers }))
  const answers = await many(12, (at) =>
    post(at, '/api/v1/shards/db-osl-1/converge', { reason: 'a test' }, { key: 'one-key' }),
  )
  expect([calls, platform.begun.filter((key) => key.includes('one-key')).length]).toEqual([1, 1])
  expect(answers.every(({ status }) => status === 200 || status === 202 || status === 409)).toBe(true)
  const other = await many(2, (at) =>
    post(at, '/api/v1/shards/db-osl-1/converge', { reason: 'another' }, { key: 'one-key' }),
  )
  expect(other.map(({ body }) => body.code)).toEqual(['IDEMPOTENCY_KEY_REUSED', 'IDEMPOTENCY_KEY_REUSED'])
})

test('a decision token that is sent to both servers at once decides once, for its verdict and its approval alone', async () => {
  const [first, second] = await many(2, async () => await asked(api.db, await claimedIncident(api.db), { required: 2 }))
  const as = api.tokens.approver
  const minted = await post(0, `/api/v1/approvals/${first}/token`, { decision: 'approve' }, { as })
  const body = { decision: 'approve', token: minted.body.token }
  const answers = await many(8, (at) => post(at, `/api/v1/approvals/${first}/decision`, body, { as }))
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  const [approval] = (await api.get(`/approvals/${first}`)).body.decisions as unknown as object[]
  expect((await api.get(`/approvals/${first}`)).body).toMatchObject({ status: 'pending', decisions: [approval] })
  const wrong = await many(2, (at) => post(at, `/api/v1/approvals/${second}/decision`, body, { as }))
  expect(wrong.map(({ status }) => status < 500 && status >= 400)).toEqual([true, true])
  expect((await api.get(`/approvals/${second}`)).body).toMatchObject({ status: 'pending', decisions: [] })
})

test('attempts to decide and wrong tokens are counted over both servers', async () => {
  const approval = await asked(api.db, await claimedIncident(api.db))
  const tries = await many(30, (at) =>
    post(at, `/api/v1/approvals/${approval}/token`, { decision: 'deny' }, { as: api.tokens.approver }),
  )
  expect(tries.filter(({ status }) => status === 429)).toHaveLength(10)
  const guesses = await many(24, (at) => post(at, '/api/v1/incidents', {}, { as: 'nst_guessed' }))
  expect(guesses.filter(({ status }) => status === 429)).toHaveLength(4)
})

test('a session that one server opened and the other ended is closed at both at once', async () => {
  const origin = (at: number) => ({ origin: urls[at] as string })
  const opened = await fetch(`${urls[0]}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...origin(0) },
    body: JSON.stringify({ token: api.tokens.approver }),
  })
  const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const who = () => many(2, async (at) => (await fetch(`${urls[at]}/auth/session`, { headers: { cookie } })).status)
  expect(await who()).toEqual([200, 200])
  await fetch(`${urls[1]}/auth/session`, { method: 'DELETE', headers: { cookie, ...origin(1) } })
  expect(await who()).toEqual([401, 401])
})

test('a sign-in code that is sent to both servers at once opens one session', async () => {
  const { body } = await post(0, '/auth/codes', {})
  const answers = await many(8, async (at) => {
    const headers = { 'content-type': 'application/json', origin: urls[at % 2] as string }
    return (
      await fetch(`${urls[at % 2]}/auth/session`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ code: body.code }),
      })
    ).status
  })
  expect(answers.filter((status) => status === 200)).toHaveLength(1)
})
