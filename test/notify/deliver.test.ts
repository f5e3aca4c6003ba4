import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import pino from 'pino'
import { Webhook } from 'standardwebhooks'
import { closeConnections } from '../../clients/http.ts'
import type { Destination, Notification } from '../../domain/escalation.ts'
import { isPushService, knownPushServices, parsePushServices } from '../../domain/push.ts'
import { renderSlack } from '../../notify/slack/notification.ts'
import { deliver } from '../../notify/webhook/deliver.ts'
import { renderGeneric } from '../../notify/webhook/generic.ts'
import { startDeliveries } from '../../worker/deliver.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type LocalServer, startLocalServer } from '../support/local-server.ts'
import { type PushService, startPushService } from '../support/push-service.ts'
import { hostileTitles, notification } from '../support/scripted-slack.ts'

describe('deliver', () => {
  describe('deliver', () => {
    let server: LocalServer
    beforeAll(async () => {
      server = await startLocalServer()
    })
    afterAll(async () => {
      await closeConnections()
      await server.close()
    })

    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const send = (more: Partial<Destination> = {}, timeoutMs = 5_000) =>
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
      [429, 'retry'],
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

    test('a receiver that asks for patience is given it', async () => {
      answer(429, 'slow down', { 'retry-after': '30' })
      expect(await send()).toEqual({
        outcome: 'retry',
        status: 429,
        reason: 'the receiver answered 429',
        afterMs: 30_000,
        responseSnippet: 'slow down',
      })
    })

    test('a redirect is dropped and not followed', async () => {
      answer(302, '', { location: `${server.url}/elsewhere` })
      const before = server.seen.length
      expect(await send()).toMatchObject({ outcome: 'drop', status: 302, reason: expect.stringContaining('redirect') })
      expect(server.seen.length).toBe(before + 1)
    })

    test('a receiver that hangs, breaks off or is not there is tried again', async () => {
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

    test('a receiver that answers with a flood has still received it', async () => {
      answer(200, 'x'.repeat(1_000_000))
      const outcome = await send()
      expect(outcome).toMatchObject({ outcome: 'sent' })
      expect(outcome.responseSnippet!.length).toBeLessThanOrEqual(500)
    })

    test.each([
      'http://169.254.169.254/',
      'http://[fd00:ec2::254]/',
      'http://0.0.0.0/',
      'file:///etc/passwd',
      'nonsense',
    ])('nothing is sent to %s, now or later', async (url) => {
      expect(await send({ url })).toMatchObject({ outcome: 'drop', status: null })
    })

    test.each(['whsec_', 'whsec_not base64!', 'password'])(
      'with the secret %j nothing goes out unsigned',
      async (bad) => {
        const before = server.seen.length
        expect(await send({ secret: bad })).toMatchObject({
          outcome: 'drop',
          reason: expect.stringContaining('secret'),
        })
        expect(server.seen.length).toBe(before)
      },
    )

    test('no outcome tells the address, which may be the credential', async () => {
      answer(404, 'Cannot POST /hook/SECRET')
      expect(JSON.stringify(await send())).not.toContain('SECRET')
      server.play(() => {})
      expect(JSON.stringify(await send({}, 50))).not.toContain('SECRET')
    })
  })

  describe('render', () => {
    const options = { deliveryId: 'msg_1', now: new Date(), secret: null }
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

    type Text = { type: string; text: string }
    type Block = { type: string; text?: Text; fields?: Text[]; elements?: (Text & { url?: string; text: unknown })[] }

    function slack(given: Notification): { text: string; blocks: Block[] } {
      return JSON.parse(renderSlack(given, options).body)
    }

    test('a receiver can verify who signed an event', () => {
      const { headers, body } = renderGeneric(notification({ trigger: 'escalated', reason: 'no one knows' }), {
        ...options,
        secret,
      })
      expect(new Webhook(secret).verify(body, headers)).toEqual({
        type: 'incident.escalated',
        timestamp: '2026-11-21T02:00:00.000Z',
        data: {
          incident: notification().incident,
          reason: 'no one knows',
          page: true,
          alertsFiring: 0,
          url: 'https://nightshift.example/incidents/inc_1',
          headHash: 'a'.repeat(64),
        },
      })
      expect(() => new Webhook(secret).verify(body.replace('inc_1', 'inc_2'), headers)).toThrow()
    })

    test('a digest names its incidents, and nobody has to be woken for it', () => {
      const incidents = [
        { id: 'inc_2', title: 'Disk full', severity: 'warning', status: 'escalated', since: '2026-11-21' },
      ]
      const given = notification({ trigger: 'digest', page: false, alertsFiring: 1, incidents: incidents as never })
      expect(JSON.parse(renderGeneric(given, options).body)).toMatchObject({
        type: 'incident.digest',
        data: { page: false, alertsFiring: 1, incidents },
      })
    })

    test('an ending says its word: how it was resolved, or why people have it', () => {
      const ended = (more: object) => {
        const given = notification({ trigger: 'escalated' })
        return JSON.parse(renderGeneric({ ...given, incident: { ...given.incident, ...more } }, options).body).data
          .incident
      }
      expect(ended({ outcome: null, category: 'mitigated' })).toMatchObject({ category: 'mitigated' })
      expect(ended({ outcome: 'repaired', category: null })).toMatchObject({ outcome: 'repaired' })
      expect(ended({ outcome: null, category: null })).toEqual(notification().incident)
    })

    test('without a secret an event has its id and no signature', () => {
      const { headers, body } = renderGeneric(notification(), options)
      expect(headers['webhook-id']).toBe('msg_1')
      expect(headers['webhook-signature']).toBeUndefined()
      expect(JSON.parse(body).type).toBe('incident.critical')
    })

    test.each(hostileTitles)('an event with the title %j is one JSON object within 20 kB that verifies', (title) => {
      const { headers, body } = renderGeneric(notification({ title: title.slice(0, 300), reason: title }), {
        ...options,
        secret,
      })
      expect(Buffer.byteLength(body)).toBeLessThan(20_000)
      new Webhook(secret).verify(body, headers)
    })

    test('Slack shows what happened, to what, and where to click', () => {
      const { text, blocks } = slack(notification({ trigger: 'escalated', reason: 'the replica does not catch up' }))
      expect(text).toBe('Escalated: MySQL replication lag exceeded 30s (shard db-osl-1)')
      expect(blocks.map((block) => block.type)).toEqual(['header', 'section', 'section', 'actions', 'context'])
      expect(blocks[0]!.text!.text).toBe('Escalated: MySQL replication lag exceeded 30s')
      expect(blocks[1]!.fields!.map((field) => field.text)).toContain('Resource: shard db-osl-1')
      expect(blocks[2]!.text!.text).toBe('the replica does not catch up')
      expect(blocks[3]!.elements![0]!.url).toBe('https://nightshift.example/incidents/inc_1')
    })

    test('a link that is no web address is no button', () => {
      for (const url of ['javascript:alert(1)', '', `https://a.example/${'x'.repeat(3_000)}`]) {
        expect(slack(notification({ url })).blocks.some((block) => block.type === 'actions')).toBe(false)
      }
    })

    function inspect(given: Notification): void {
      const { text, blocks } = slack(given)
      const texts: Text[] = blocks.flatMap((block) => [
        ...(block.text ? [block.text] : []),
        ...(block.fields ?? []),
        ...(block.elements ?? []).map((one) =>
          one.type === 'button' ? (one.text as unknown as Text) : (one as unknown as Text),
        ),
      ])
      // Slack's documented limits.
      expect(blocks.length).toBeLessThanOrEqual(45)
      expect(blocks[0]!.text!.text.length).toBeLessThanOrEqual(150)
      for (const block of blocks) {
        if (block.type === 'section' && block.text) expect(block.text.text.length).toBeLessThanOrEqual(3_000)
        for (const field of block.fields ?? []) expect(field.text.length).toBeLessThanOrEqual(2_000)
        expect(block.fields?.length ?? 0).toBeLessThanOrEqual(10)
      }
      expect(JSON.stringify(blocks).length).toBeLessThan(12_000)
      // No element in which Slack reads formatting, and no word it reacts to.
      for (const one of [...texts, { type: 'plain_text', text }]) {
        expect(one.type).toBe('plain_text')
        expect(one.text.length).toBeGreaterThan(0)
        expect(one.text).not.toMatch(/[<>]/)
        expect(one.text).not.toMatch(/@(channel|here|everyone|group)/i)
        expect(one.text).not.toMatch(/&(?!amp;|lt;|gt;)/) // an entity is never cut
        expect(one.text).not.toMatch(/[\p{Cc}\u202A-\u202E\u2066-\u2069]/u)
        expect(one.text.isWellFormed()).toBe(true)
      }
    }

    test.each(hostileTitles)('Slack shows the title %j inert and within its limits', (title) => {
      inspect(notification({ title, reason: title }))
    })

    test('whatever an alert is called, Slack gets a message it takes', () => {
      const text = fc.string({ unit: 'binary', maxLength: 6_000 })
      fc.assert(fc.property(text, text, (title, reason) => inspect(notification({ title, reason }))))
    })
  })
})

describe('push', () => {
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

  test('a person who may decide gets what is asked, encrypted for their browser, signed, and only until it expires', async () => {
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
    await eventually(
      'when it was sent',
      async () => (await devices(api.tokens.approver)).devices[0]?.lastSentAt !== null,
    )
  })

  test('who may not decide about it gets nothing: another type, another risk, a disabled person', async () => {
    await subscribe(api.tokens.approver)
    const set = (change: object) =>
      api.owner.updateTable('operator').set(change).where('name', '=', 'approver').execute()
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

  test('a browser that is gone is forgotten, and a service that is busy is asked again', async () => {
    await subscribe(api.tokens.approver)
    service.answers.push(503)
    await asked(api.db, await claimedIncident(api.db, { title: 'Busy' }))
    await eventually('the second attempt', () => service.pushed.length === 1)
    service.answers.push(410)
    await asked(api.db, await claimedIncident(api.db, { title: 'Gone' }))
    await eventually('it to be forgotten', async () => (await devices(api.tokens.approver)).devices.length === 0)
  })

  test('a browser cannot name an address of its own choice, nor a key that is none', async () => {
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

  test("a person sees and removes their own browsers, nobody else's; one that changes hands leaves the first", async () => {
    const shared = service.subscribe()
    const { body } = await subscribe(api.tokens.approver, shared)
    const { id } = body as unknown as { id: string }
    expect((await api.post(`/push/subscriptions/${id}/remove`, { as: api.tokens.admin })).status).toBe(404)
    await subscribe(api.tokens.admin, shared)
    expect((await devices(api.tokens.approver)).devices).toEqual([])
    expect((await api.post(`/push/subscriptions/${id}/remove`, { as: api.tokens.admin })).status).toBe(200)
    expect((await devices(api.tokens.admin)).devices).toEqual([])
    expect((await devices(api.tokens.admin)).publicKey).toBe((await devices(api.tokens.approver)).publicKey)
  })

  test('of a person with twenty browsers the oldest goes when one more comes', async () => {
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

  test('PUSH_SERVICES takes hosts, all below a host, and origins, and nothing else', () => {
    expect(parsePushServices('push.example.org, *.push.example.org,http://10.0.0.7:8080')).toEqual([
      ...['push.example.org', '*.push.example.org', 'http://10.0.0.7:8080'],
    ])
    for (const wrong of ['*', '*.', 'a b', 'https://x/path', 'ftp://x', '.example.org'])
      expect(parsePushServices(wrong)).toBeNull()
  })
})
