import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { closeConnections } from '../../../clients/http.ts'
import type { WebhookTarget } from '../../../domain/notification.ts'
import { deliver } from '../../../notify/webhook/deliver.ts'
import { type LocalServer, startLocalServer } from '../../support/local-server.ts'
import { notification } from '../../support/scripted-slack.ts'

let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterAll(async () => {
  await closeConnections()
  await server.close()
})

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const send = (more: Partial<WebhookTarget> = {}, timeoutMs = 5_000) =>
  deliver({ template: 'generic', url: `${server.url}/hook/SECRET`, secret: null, ...more }, notification(), {
    deliveryId: 'msg_1',
    now: new Date(),
    timeoutMs,
  })
const answer = (status: number, body = '', headers: Record<string, string> = {}) =>
  server.play((response) => response.writeHead(status, headers).end(body))

test('a notification arrives signed, and the receiver can check it', async () => {
  answer(200, 'ok')
  expect(await send({ secret })).toEqual({ outcome: 'sent', status: 200, responseSnippet: 'ok' })
  const { body, headers, method } = server.seen.at(-1)!
  expect(method).toBe('POST')
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'incident.critical' })
})

test('a notification arrives at Slack as blocks', async () => {
  answer(200, 'ok')
  expect(await send({ template: 'slack' })).toMatchObject({ outcome: 'sent' })
  expect(JSON.parse(server.seen.at(-1)!.body).blocks[0].type).toBe('header')
})

test.each([
  [204, 'sent'],
  [408, 'retry'],
  [429, 'wait'],
  [500, 'retry'],
  [503, 'retry'],
  [400, 'drop'],
  [401, 'drop'],
  [404, 'drop'],
  [410, 'drop'],
])('a receiver that answers %i: %s', async (status, outcome) => {
  answer(status)
  expect(await send()).toMatchObject({ outcome, status })
})

test('a receiver that asks for a delay gets it', async () => {
  answer(429, 'slow down', { 'retry-after': '30' })
  expect(await send()).toEqual({
    outcome: 'wait',
    status: 429,
    reason: 'the receiver answered 429',
    afterMs: 30_000,
    responseSnippet: 'slow down',
  })
})

test('503 is a wait if it names a time and otherwise a failure, and a wait of zero is a short wait', async () => {
  answer(503, '', { 'retry-after': '30' })
  expect(await send()).toMatchObject({ outcome: 'wait', afterMs: 30_000 })
  answer(429, '', { 'retry-after': '0' })
  expect(await send()).toMatchObject({ outcome: 'wait', afterMs: 100 })
  answer(503)
  expect(await send()).toMatchObject({ outcome: 'retry', afterMs: null })
})

test('a redirect is dropped and not followed', async () => {
  answer(302, '', { location: `${server.url}/elsewhere` })
  const before = server.seen.length
  expect(await send()).toMatchObject({ outcome: 'drop', status: 302, reason: expect.stringContaining('redirect') })
  expect(server.seen.length).toBe(before + 1)
})

test('a receiver that hangs, breaks off or is unreachable is tried again', async () => {
  server.play(() => {})
  expect(await send({}, 100)).toMatchObject({
    outcome: 'retry',
    status: null,
    reason: expect.stringContaining('in time'),
  })
  server.play((response) => response.destroy())
  expect(await send()).toMatchObject({ outcome: 'retry', status: null })
  expect(await send({ url: 'http://127.0.0.1:1/' })).toMatchObject({ outcome: 'retry', status: null })
})

test('a receiver that answers with a flood has received the message', async () => {
  answer(200, 'x'.repeat(1_000_000))
  const outcome = await send()
  expect(outcome).toMatchObject({ outcome: 'sent' })
  expect(outcome.responseSnippet!.length).toBeLessThanOrEqual(500)
})

test.each(['http://169.254.169.254/', 'http://[fd00:ec2::254]/', 'http://0.0.0.0/', 'file:///etc/passwd', 'nonsense'])(
  'nothing is sent to %s, now or later',
  async (url) => {
    expect(await send({ url })).toMatchObject({ outcome: 'drop', status: null })
  },
)

test.each(['whsec_', 'whsec_not base64!', 'password'])('with the secret %j nothing is sent unsigned', async (bad) => {
  const before = server.seen.length
  expect(await send({ secret: bad })).toMatchObject({
    outcome: 'drop',
    reason: expect.stringContaining('secret'),
  })
  expect(server.seen.length).toBe(before)
})

test('no outcome contains the address, which may be the credential', async () => {
  answer(404, 'Cannot POST /hook/SECRET')
  expect(JSON.stringify(await send())).not.toContain('SECRET')
  server.play(() => {})
  expect(JSON.stringify(await send({}, 50))).not.toContain('SECRET')
})
