import { expect, test } from '@jest/globals'
import { Webhook } from 'standardwebhooks'
import { renderGeneric } from '../../../notify/webhook/generic.ts'
import { hostileTitles, notification } from '../../support/scripted-slack.ts'

const options = { deliveryId: 'msg_1', now: new Date(), secret: null }

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

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
  const incidents = [{ id: 'inc_2', title: 'Disk full', severity: 'warning', status: 'escalated', since: '2026-11-21' }]
  const given = notification({ trigger: 'digest', page: false, alertsFiring: 1, incidents: incidents as never })
  expect(JSON.parse(renderGeneric(given, options).body)).toMatchObject({
    type: 'incident.digest',
    data: { page: false, alertsFiring: 1, incidents },
  })
})

test('an ending has its word: how the incident was resolved, or why people have it', () => {
  const ended = (more: object) => {
    const given = notification({ trigger: 'escalated' })
    return JSON.parse(renderGeneric({ ...given, incident: { ...given.incident, ...more } }, options).body).data.incident
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
