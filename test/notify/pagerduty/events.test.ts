import { expect, test } from '@jest/globals'
import type { Notification } from '../../../domain/notification.ts'
import { pagerdutyLimits, renderEvent, renderTest } from '../../../notify/pagerduty/events.ts'
import { hostileTitles, notification } from '../../support/scripted-slack.ts'

const key = 'R0123456789ABCDEF0123456789ABCDE'
type Event = {
  routing_key: string
  event_action: string
  dedup_key: string
  links?: { href: string; text: string }[]
  client_url?: string
  payload?: { summary: string; source: string; severity: string; timestamp: string; custom_details: object }
}
const render = (more: Partial<Notification> & { title?: string } = {}): Event =>
  JSON.parse(renderEvent(notification(more), key, { deliveryId: 'msg_1' }).body)

/**
 * What the published schema, https://developer.pagerduty.com/docs/send-alert-event, would not take.
 * Empty: fine.
 */
function flawsOf(event: Event): string[] {
  const { payload } = event
  const found: string[] = []
  const say = (is: boolean, what: string) => void (is && found.push(what))
  say(!/^[A-Za-z0-9]{32}$/.test(event.routing_key), 'routing_key')
  say(!['trigger', 'acknowledge', 'resolve'].includes(event.event_action), 'event_action')
  say(event.dedup_key.length === 0 || event.dedup_key.length > 255, 'dedup_key')
  say(Buffer.byteLength(JSON.stringify(event)) > pagerdutyLimits.event, 'size')
  if (event.event_action !== 'trigger') return found
  say(!payload || payload.summary.length === 0 || payload.summary.length > 1_024, 'summary')
  say(!payload?.source, 'source')
  say(!['critical', 'error', 'warning', 'info'].includes(payload?.severity ?? ''), 'severity')
  say(Number.isNaN(Date.parse(payload?.timestamp ?? '')), 'timestamp')
  say(
    (event.links ?? []).some(({ href }) => !URL.canParse(href)),
    'links',
  )
  return found
}

test('the event fits the published schema, whatever the name of the alert is', () => {
  for (const title of [...hostileTitles, 'é'.repeat(3_000)]) {
    const event = render({ title, reason: title.repeat(20).slice(0, 400_000) })
    expect(flawsOf(event)).toEqual([])
    expect(event.payload?.summary).not.toMatch(/[\p{Cc}\u202e]/u)
  }
})

test('a critical incident opens an alert by its own key', () => {
  expect(render()).toMatchObject({
    routing_key: key,
    event_action: 'trigger',
    dedup_key: 'inc_1',
    client_url: 'https://nightshift.example/incidents/inc_1',
    payload: { severity: 'critical', source: 'db-osl-1', summary: 'Critical: MySQL replication lag exceeded 30s' },
  })
})

test('a resolution and a cancellation end the alert, and a person who takes the incident acknowledges it', () => {
  const actions = (['resolved', 'closed', 'taken'] as const).map((trigger) => {
    const { event_action, dedup_key, payload } = render({ trigger })
    return [event_action, dedup_key, payload]
  })
  expect(actions).toEqual([
    ['resolve', 'inc_1', undefined],
    ['resolve', 'inc_1', undefined],
    ['acknowledge', 'inc_1', undefined],
  ])
})

test('a question pages with the address of its card', () => {
  const url = 'https://nightshift.example/approvals/apr_1'
  const approval = { id: 'apr_1', tool: 'reboot', risk: 'high', reversible: false, summary: 'Reboot db-osl-1' } as const
  const asked = { ...approval, required: 1, expiresAt: '2026-11-21T03:00:00Z', reminder: 0 }
  const event = render({ trigger: 'approval', approval: asked, url, reason: 'It hangs' })
  expect(event).toMatchObject({
    event_action: 'trigger',
    dedup_key: 'inc_1',
    links: [{ href: url, text: 'Review request' }],
    payload: { summary: 'Approval needed: Reboot db-osl-1' },
  })
})

test('a message that wakes people is at least an error, and another one keeps its severity', () => {
  const incident = { ...notification().incident, severity: 'warning' as const }
  expect(render({ incident }).payload?.severity).toBe('error')
  expect(render({ incident, page: false }).payload?.severity).toBe('warning')
})

test('a message about several incidents has its own key, so the end of one does not end it', () => {
  expect(render({ trigger: 'notice' }).dedup_key).toBe('msg_1')
})

test('a lost duty is an alert by its name, which its return ends', () => {
  const of = (title: string, page: boolean) =>
    render({ trigger: 'duty', page, incident: { ...notification().incident, title } })
  expect([of('Nightshift: Temporal is lost', true), of('Nightshift: Temporal is back', false)]).toMatchObject([
    { event_action: 'trigger', dedup_key: 'Nightshift: Temporal' },
    { event_action: 'resolve', dedup_key: 'Nightshift: Temporal' },
  ])
})

test('a test message ends at once what it began', () => {
  const { begin, end } = renderTest(notification(), key, 'msg_1')
  const events = [begin, end].map(({ body }) => JSON.parse(body))
  expect(events.map(({ event_action, dedup_key }) => [event_action, dedup_key])).toEqual([
    ['trigger', 'test-msg_1'],
    ['resolve', 'test-msg_1'],
  ])
  expect(events.flatMap(flawsOf)).toEqual([])
})
