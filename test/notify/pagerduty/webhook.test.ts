import { createHmac } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { isSigned, readWebhook } from '../../../notify/pagerduty/webhook.ts'

const secret = 'a-secret-of-pagerduty'
const body = Buffer.from('{"event":{}}')
const sign = (by: string) => `v1=${createHmac('sha256', by).update(body).digest('hex')}`

test.each([
  ['its signature', sign(secret), true],
  ['one of several, while the secret is changed', `${sign('the old one')},${sign(secret)}`, true],
  ['one of several, with a blank', `${sign('the old one')}, ${sign(secret)}`, true],
  ['another secret', sign('another'), false],
  ['the version of later', sign(secret).replace('v1=', 'v2='), false],
  ['capitals', sign(secret).toUpperCase(), false],
  ['nothing', undefined, false],
  ['an empty header', '', false],
  ['a secret that is empty', sign(''), false],
])('%s', (_what, header, is) => {
  expect(isSigned(secret, header, body)).toBe(is)
})

const event = (change: object) => ({
  event: {
    id: '01CH754SM3TWPLWZ5YR',
    event_type: 'incident.acknowledged',
    resource_type: 'incident',
    occurred_at: '2026-11-26T01:50:00.000Z',
    agent: {
      id: 'PLH1HKV',
      type: 'user_reference',
      summary: 'Tenex\u202e Engineer',
      html_url: 'https://acme.pagerduty.com',
    },
    client: { name: 'PagerDuty' },
    data: { id: 'PGR0VU2', type: 'incident', incident_key: `inc_${'0'.repeat(26)}` },
    ...change,
  },
})
const read = (value: unknown) => readWebhook(Buffer.from(JSON.stringify(value)))

test('an event has its person, action and incident', () => {
  expect(read(event({}))).toEqual({
    act: {
      eventId: '01CH754SM3TWPLWZ5YR',
      act: 'acknowledged',
      incidentId: `inc_${'0'.repeat(26)}`,
      occurredAt: '2026-11-26T01:50:00.000Z',
      agent: { id: 'PLH1HKV', name: 'Tenex\ufffd Engineer', isPerson: true },
    },
  })
})

test('a program is no person, and an event may name nobody', () => {
  const agent = { id: 'PF9KMXH', type: 'service_reference', summary: 'API Service' }
  expect(read(event({ agent }))).toMatchObject({ act: { agent: { isPerson: false } } })
  expect(read(event({ agent: null }))).toMatchObject({ act: { agent: null } })
})

test.each([
  [event({ event_type: 'incident.triggered' }), 'ignores events of this type'],
  [event({ event_type: 'constructor' }), 'ignores events of this type'],
  [event({ event_type: 'service.updated', data: {} }), 'ignores events of this type'],
  [event({ data: { incident_key: 'd3640fbd41094207a1c11e58e46b1662' } }), 'the key of the event'],
  [event({ data: {} }), 'the key of the event'],
])('%j is never an alert, and has no effect', (value, why) => {
  expect(read(value)).toEqual({ ignored: expect.stringContaining(why) })
})

test.each(['', '{', '[]', '{"event":1}', '{"messages":[{"event":"incident.acknowledge"}]}'])(
  '%s is no event',
  (text) => {
    expect(readWebhook(Buffer.from(text))).toBeNull()
  },
)
