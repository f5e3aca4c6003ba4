import { Webhook } from 'standardwebhooks'
import { HttpError, request, retryAfterMs } from '../clients/http.ts'
import type {
  DeliveryOutcome,
  Destination,
  Notification,
  Render,
  Rendered,
  RenderOptions,
  WebhookTemplate,
} from '../domain/escalation.ts'
import { inertText } from '../domain/inert-text.ts'
import { renderSlack } from '../slack/notification.ts'

const maxReasonChars = 4_000

/**
 * A JSON event as Standard Webhooks lays it out: `{ type, timestamp, data }`. With a secret it is signed, over exactly the
 * bytes that are sent; text is data here, as the incident has it.
 */
export function renderGeneric(notification: Notification, { deliveryId, now, secret }: RenderOptions): Rendered {
  const { trigger, incident, reason, approval, url, at, headHash, page, alertsFiring, incidents } = notification
  const { id, type, severity, status, title, resource, outcome, category } = incident
  const body = JSON.stringify({
    type:
      trigger === 'approval'
        ? approval?.reminder
          ? 'approval.reminder'
          : 'approval.requested'
        : `incident.${trigger}`,
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
      // False: nobody has to be woken for this.
      page,
      alertsFiring,
      ...(incidents.length > 0 && { incidents }),
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

function sign(secret: string, deliveryId: string, now: Date, body: string): string {
  // The library takes any base64, `password` included; the specification asks for 24 bytes.
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) throw new Error('the webhook secret is not whsec_ and base64')
  return new Webhook(secret).sign(deliveryId, now, body)
}

type DeliverOptions = {
  /** The same for every attempt of one delivery. */
  deliveryId: string
  now: Date
  timeoutMs?: number
  signal?: AbortSignal
}

/** `responseSnippet`: what the receiver said, for the delivery log; empty when it said nothing. */
type Delivery = DeliveryOutcome & { responseSnippet: string }

/** A template is a file that renders and a line here; its name is in `webhookTemplates`. */
const templates: Record<WebhookTemplate, Render> = { generic: renderGeneric, slack: renderSlack }

/**
 * One attempt to deliver. Never throws: every end is `sent`, `retry` or `drop`. Follows no redirect and reaches no metadata
 * service; the address, which may be a credential, is in no reason.
 */
export async function deliver(
  destination: Destination,
  notification: Notification,
  { deliveryId, now, timeoutMs = 30_000, signal }: DeliverOptions,
): Promise<Delivery> {
  let rendered: Rendered
  try {
    rendered = templates[destination.template](notification, { deliveryId, now, secret: destination.secret })
  } catch {
    // Unsigned would be worse than unsent.
    return drop(null, 'the webhook secret cannot sign: it must be whsec_ and the base64 of at least 24 bytes')
  }
  try {
    const answer = await request({
      method: 'POST',
      url: destination.url,
      headers: { 'user-agent': 'nightshift', ...rendered.headers },
      body: rendered.body,
      timeoutMs,
      maxBytes: 16_000,
      overflow: 'cut',
      allow: 'private',
      signal,
    })
    const said = snippet(answer.body, destination.url)
    const { status } = answer
    if (status >= 200 && status < 300) return { outcome: 'sent', status, responseSnippet: said }
    const reason = `the receiver answered ${status}`
    if (status === 429 || status === 408 || status >= 500) {
      const afterMs = retryAfterMs(answer.headers, now.getTime())
      return { outcome: 'retry', status, reason, afterMs, responseSnippet: said }
    }
    if (status >= 300 && status < 400) return drop(status, `${reason}: a redirect, which is not followed`, said)
    return drop(status, reason, said)
  } catch (error) {
    if (!(error instanceof HttpError)) return drop(null, 'the notification could not be sent')
    if (!error.retryable && error.code !== 'aborted') return drop(null, reasonOf(error))
    return { outcome: 'retry', status: null, reason: reasonOf(error), afterMs: null, responseSnippet: '' }
  }
}

const reasons: Record<HttpError['code'], string> = {
  timeout: 'the receiver did not answer in time',
  connect: 'the receiver cannot be reached',
  unavailable: 'the receiver is not available',
  too_large: 'the receiver answered too much',
  refused_address: 'the address of the receiver is refused by policy',
  aborted: 'the attempt was cancelled',
  protocol: 'the receiver does not speak HTTP as it should',
}

function reasonOf(error: HttpError): string {
  return reasons[error.code]
}

function drop(status: number | null, reason: string, responseSnippet = ''): Delivery {
  return { outcome: 'drop', status, reason, responseSnippet }
}

/** Error pages like to repeat the path, which may be the credential. */
function snippet(body: Uint8Array, address: string): string {
  const path = URL.parse(address)?.pathname ?? '/'
  const text = Buffer.from(body).toString('utf8')
  return inertText(path.length > 1 ? text.replaceAll(path, '[path]') : text, 500)
}
