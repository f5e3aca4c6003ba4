import { Webhook } from 'standardwebhooks'
import type { Notification, RenderedMessage, RenderOptions } from '../../domain/notification.ts'
import { isCard } from '../words.ts'

const maxReasonChars = 4_000

/**
 * Renders a JSON event by Standard Webhooks: `{ type, timestamp, data }`. With a secret, signs
 * exactly the bytes that are sent. Does not escape texts, because they are data in JSON.
 */
export function renderGeneric(notification: Notification, { deliveryId, now, secret }: RenderOptions): RenderedMessage {
  const { incident, reason, approval, url, at, headHash, page, alertsFiring, incidents, lines } = notification
  const { id, type, severity, status, title, resource, outcome, category } = incident
  const body = JSON.stringify({
    type: toType(notification),
    timestamp: at,
    data: {
      incident: {
        id,
        type,
        severity,
        status,
        title,
        resource,
        ...(outcome && { outcome }),
        ...(category && { category }),
      },
      reason: reason === null ? null : reason.slice(0, maxReasonChars).toWellFormed(),
      ...(approval && { approval }),
      // False if the message is not urgent.
      page,
      alertsFiring,
      ...(incidents.length > 0 && { incidents }),
      ...(lines.length > 0 && { lines: lines.map(({ text, url: to }) => ({ text, url: to })) }),
      url,
      headHash,
    },
  })
  return {
    body,
    headers: {
      'content-type': 'application/json',
      'webhook-id': deliveryId,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      ...(secret === null ? {} : { 'webhook-signature': sign(secret, deliveryId, now, body) }),
    },
  }
}

function toType({ trigger, approval }: Notification): string {
  if (trigger === 'approval') return approval?.reminder ? 'approval.reminder' : 'approval.requested'
  return isCard(trigger) ? `shift.${trigger}` : `incident.${trigger}`
}

function sign(secret: string, deliveryId: string, now: Date, body: string): string {
  // Checks the form, because the library accepts any base64, even `password`, and the specification
  // asks for 24 bytes.
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) throw new Error('the webhook secret must be whsec_ and base64')
  return new Webhook(secret).sign(deliveryId, now, body)
}
