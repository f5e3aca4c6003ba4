import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import pino from 'pino'
import { isPushService, knownPushServices, parsePushServices } from '../../domain/push.ts'
import { startDeliveries } from '../../worker/deliver.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type PushService, startPushService } from '../support/push-service.ts'

let service: PushService
let deliveries: ReturnType<typeof startDeliveries>
const services: string[] = []
const api = useApi(() => ({ pushServices: services }))

beforeAll(async () => {
  service = await startPushService()
  services.push(service.origin)
  const site = { publicUrl: 'https://nightshift.example', pushServices: services }
  deliveries = startDeliveries(api.db, pino({ level: 'silent' }), site)
})
afterEach(async () => {
  service.pushed.length = 0
  await api.db.deleteFrom('pushSubscription').execute()
})
afterAll(async () => {
  await deliveries?.stop()
  service?.close()
})

const subscribe = (as: string, body: object = service.subscribe()) =>
  api.post('/push/subscriptions', { as, body: { ...body, name: 'Chrome on Android' } })
const devices = async (as: string) =>
  (await api.get('/push', { as })).body as unknown as {
    publicKey: string
    devices: { id: string; lastSentAt: string | null }[]
  }

test('a person who may decide gets the question, encrypted for their browser, signed, and only until it expires', async () => {
  const { status, body } = await subscribe(api.tokens.approver)
  expect(status).toBe(201)
  expect(JSON.stringify(body)).not.toContain(service.origin)
  const incident = await claimedIncident(api.db, { title: 'Host \u202Eosl-1 is down' })
  const approval = await asked(api.db, incident, { expirySeconds: 300 })
  await eventually('the message', () => service.pushed.length === 1)
  const [pushed] = service.pushed
  expect(pushed?.message).toEqual({
    title: expect.stringMatching(/^Approval needed: Host [^\u202E]*osl-1 is down$/),
    body: 'Start 2 VMs (high risk)',
    path: `/approvals/${approval}`,
    tag: approval,
  })
  expect(pushed?.claims).toMatchObject({ aud: service.origin, sub: 'https://nightshift.example' })
  expect(pushed?.headers).toMatchObject({ urgency: 'high', topic: approval, 'content-encoding': 'aes128gcm' })
  expect(Number(pushed?.headers.ttl)).toBeLessThanOrEqual(300)
  expect(Number(pushed?.headers.ttl)).toBeGreaterThan(200)
  await eventually('when it was sent', async () => (await devices(api.tokens.approver)).devices[0]?.lastSentAt !== null)
})

test('a person who may not decide a question gets nothing: another type, another risk, a disabled person', async () => {
  await subscribe(api.tokens.approver)
  const set = (change: object) => api.owner.updateTable('operator').set(change).where('name', '=', 'approver').execute()
  const before = { maxRisk: 'high' as const, incidentTypes: null, disabledAt: null }
  for (const change of [
    { maxRisk: 'low' as const },
    { incidentTypes: JSON.stringify(['other_type']) },
    { disabledAt: '2026-11-21T00:00:00Z' },
  ]) {
    await set(change)
    await asked(api.db, await claimedIncident(api.db))
    await set(before)
  }
  await asked(api.db, await claimedIncident(api.db, { title: 'The last' }))
  await eventually('the last', () => service.pushed.length > 0)
  expect(service.pushed.map(({ message }) => message.title)).toEqual(['Approval needed: The last'])
})

test('a removed browser is forgotten, and a busy service is asked again', async () => {
  await subscribe(api.tokens.approver)
  service.answers.push(503)
  await asked(api.db, await claimedIncident(api.db, { title: 'Busy' }))
  await eventually('the second attempt', () => service.pushed.length === 1)
  service.answers.push(410)
  await asked(api.db, await claimedIncident(api.db, { title: 'Gone' }))
  await eventually('it to be forgotten', async () => (await devices(api.tokens.approver)).devices.length === 0)
})

test('a browser cannot name an address of its own choice, nor an invalid key', async () => {
  const { keys } = service.subscribe()
  for (const endpoint of [
    'http://169.254.169.254/latest/meta-data',
    'https://evil.example/x',
    'http://127.0.0.1:1/push',
  ])
    expect(await subscribe(api.tokens.approver, { endpoint, keys })).toMatchObject({
      status: 409,
      body: { code: 'PUSH_SERVICE_UNKNOWN' },
    })
  const endpoint = service.subscribe().endpoint
  const p256dh = `B${'A'.repeat(86)}`
  expect(await subscribe(api.tokens.approver, { endpoint, keys: { ...keys, p256dh } })).toMatchObject({
    status: 409,
    body: { code: 'PUSH_KEY_INVALID' },
  })
  for (const as of [api.tokens.viewer, api.tokens.operator, api.tokens.agent])
    expect((await subscribe(as)).status).toBe(403)
})

test('people see and remove only their own browsers, and a browser that changes hands leaves the first person', async () => {
  const shared = service.subscribe()
  const { body } = await subscribe(api.tokens.approver, shared)
  const { id } = body as unknown as { id: string }
  expect((await api.post(`/push/subscriptions/${id}/remove`, { as: api.tokens.admin })).status).toBe(404)
  await subscribe(api.tokens.admin, shared)
  expect((await devices(api.tokens.approver)).devices).toEqual([])
  expect((await api.post(`/push/subscriptions/${id}/remove`, { as: api.tokens.admin })).status).toBe(200)
  expect((await devices(api.tokens.admin)).devices).toEqual([])
  expect((await devices(api.tokens.admin)).publicKey).toBe((await devices(api.tokens.approver)).publicKey)
  const [removed, subscribed] = (await api.get('/audit?what=push')).body.items as unknown as object[]
  expect(removed).toMatchObject({ what: 'push.removed', who: 'admin' })
  expect(subscribed).toMatchObject({ what: 'push.subscribed', who: 'admin' })
})

test('of a person with twenty browsers the oldest is removed when another is added', async () => {
  for (let n = 0; n < 22; n += 1) await subscribe(api.tokens.approver)
  expect((await devices(api.tokens.approver)).devices.length).toBe(20)
})

test.each([
  ['https://fcm.googleapis.com/fcm/send/x', true],
  ['https://updates.push.services.mozilla.com/wpush/v2/x', true],
  ['https://web.push.apple.com/x', true],
  ['https://evilpush.apple.com/x', false],
  ['https://push.apple.com.evil.example/x', false],
  ['https://fcm.googleapis.com:8443/x', false],
  ['https://user@fcm.googleapis.com/x', false],
  ['http://fcm.googleapis.com/x', false],
  ['https://127.0.0.1/x', false],
])('%s is a push service of browsers: %s', (endpoint, isOne) => {
  expect(isPushService(endpoint, knownPushServices)).toBe(isOne)
})

test('PUSH_SERVICES accepts hosts, all hosts below one, and origins, and nothing else', () => {
  expect(parsePushServices('push.example.org, *.push.example.org,http://10.0.0.7:8080')).toEqual([
    ...['push.example.org', '*.push.example.org', 'http://10.0.0.7:8080'],
  ])
  for (const wrong of ['*', '*.', 'a b', 'https://x/path', 'ftp://x', '.example.org'])
    expect(parsePushServices(wrong)).toBeNull()
})
