import { truncate } from '../../domain/format.ts'
import { inertText } from '../../domain/inert-text.ts'
import type { Notification, RenderedMessage, Trigger } from '../../domain/notification.ts'
import { factsOf, headingOf, isAboutSeveral, linesOfIncidents, linkWords, resourceWords } from '../words.ts'

/** PagerDuty's Events API v2: https://developer.pagerduty.com/docs/events-api-v2-overview */

/** Limits of PagerDuty. A whole event may have 512 kB. Its texts are cut to far less. */
export const pagerdutyLimits = { summary: 1_024, dedupKey: 255, event: 512_000 } as const

const maxSourceChars = 255
const maxDetailChars = 4_000

type EventAction = 'trigger' | 'acknowledge' | 'resolve'

const actions: Partial<Record<Trigger, EventAction>> = {
  resolved: 'resolve',
  closed: 'resolve',
  taken: 'acknowledge',
}

/**
 * Builds the event for a notification. The key is the id of the incident, so that all events of an
 * incident are one alert in PagerDuty. A message about several incidents has a separate key, so
 * that the end of one incident does not resolve its alert. The message that a vital part of
 * Nightshift is back resolves the alert about the loss of this part.
 */
export function renderEvent(
  notification: Notification,
  integrationKey: string,
  { deliveryId }: { deliveryId: string },
): RenderedMessage {
  const { trigger, incident, page } = notification
  if (trigger === 'duty')
    return toMessage(page ? 'trigger' : 'resolve', integrationKey, keyOfDuty(incident.title), notification)
  const key = isAboutSeveral(notification) ? deliveryId : incident.id
  return toMessage(actions[trigger] ?? 'trigger', integrationKey, key, notification)
}

/**
 * Returns one key for the loss and the return of a vital part: the title without ` is lost` or ` is
 * back`.
 */
function keyOfDuty(title: string): string {
  return title.replace(/ is (lost|back)$/, '')
}

/**
 * Builds a test message that opens an alert of the lowest severity, and a second message that
 * resolves this alert at once.
 */
export function renderTest(
  notification: Notification,
  integrationKey: string,
  deliveryId: string,
): { begin: RenderedMessage; end: RenderedMessage } {
  const render = (action: EventAction) => toMessage(action, integrationKey, `test-${deliveryId}`, notification)
  return { begin: render('trigger'), end: render('resolve') }
}

function toMessage(
  action: EventAction,
  integrationKey: string,
  key: string,
  notification: Notification,
): RenderedMessage {
  const event = {
    routing_key: integrationKey,
    event_action: action,
    dedup_key: key.slice(0, pagerdutyLimits.dedupKey),
    ...(action === 'trigger' && {
      client: 'Nightshift',
      client_url: notification.url,
      links: [{ href: notification.url, text: linkWords(notification) }],
      payload: toPayload(notification),
    }),
  }
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(event) }
}

function toPayload(notification: Notification) {
  const { incident, at, reason, incidents, approval } = notification
  return {
    summary:
      truncate(inertText(headingOf(notification), pagerdutyLimits.summary), pagerdutyLimits.summary) || 'Nightshift',
    source: inertText(incident.resource?.id ?? incident.id, maxSourceChars),
    severity: toSeverity(notification),
    timestamp: at,
    component: inertText(resourceWords(incident), maxSourceChars),
    class: incident.type,
    custom_details: {
      incident: incident.id,
      ...Object.fromEntries(factsOf(notification).map(([name, value]) => [name, inertText(value, 300)])),
      ...(approval?.sections
        ? Object.fromEntries(approval.sections.map(({ title, text }) => [title, inertText(text, maxDetailChars)]))
        : {
            ...(reason?.trim() && { reason: inertText(reason, maxDetailChars, { lines: true }) }),
            ...(approval?.cause && { cause: inertText(approval.cause, maxDetailChars) }),
          }),
      ...(incidents.length > 0 && {
        incidents: linesOfIncidents(incidents).map((line) => inertText(line, 300)),
      }),
    },
  }
}

/**
 * Returns the severity for PagerDuty. A service in PagerDuty may wake people only for `critical`
 * and `error`, so an event that should wake somebody is at least `error`.
 */
function toSeverity({ incident: { severity }, page }: Notification): 'critical' | 'error' | 'warning' | 'info' {
  return page && severity !== 'critical' ? 'error' : severity
}
