import { HttpError, request, retryAfterMs } from '../../clients/http.ts'
import { inertText } from '../../domain/inert-text.ts'
import {
  type DeliveryOutcome,
  type Destination,
  type Notification,
  type Render,
  type RenderedMessage,
  type WebhookTemplate,
  waitOrRetry,
} from '../../domain/notification.ts'
import { renderSlack } from '../slack/notification.ts'
import { renderGeneric } from './generic.ts'

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
 * One attempt to deliver. Never throws: every end is `sent`, `wait`, `retry` or `drop`. Follows no redirect and reaches no metadata
 * service; the address, which may be a credential, is in no reason.
 */
export async function deliver(
  destination: Destination,
  notification: Notification,
  { deliveryId, now, timeoutMs = 30_000, signal }: DeliverOptions,
): Promise<Delivery> {
  let rendered: RenderedMessage
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
    const again = waitOrRetry(status, reason, retryAfterMs(answer.headers, now.getTime()))
    if (again) return { ...again, responseSnippet: said }
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
