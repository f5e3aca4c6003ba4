import { HttpError, request, retryAfterMs } from '../clients/http.ts'
import { inertText } from '../domain/inert-text.ts'
import { type DeliverOptions, type Delivery, type RenderedMessage, waitOrRetry } from '../domain/notification.ts'

type PostOptions = Pick<DeliverOptions, 'now' | 'timeoutMs' | 'signal'>

/**
 * Posts a message once. Never throws; the result is `sent`, `wait`, `retry` or `drop`. Follows no
 * redirect and connects to no metadata service. The result does not contain the address, which may
 * be a credential.
 */
export async function post(
  url: string,
  { headers, body }: RenderedMessage,
  { now, timeoutMs = 30_000, signal }: PostOptions,
): Promise<Delivery> {
  try {
    const answer = await request({
      method: 'POST',
      url,
      headers: { 'user-agent': 'nightshift', ...headers },
      body,
      timeoutMs,
      maxBytes: 16_000,
      overflow: 'cut',
      allow: 'private',
      signal,
    })
    const said = snippet(answer.body, url)
    const { status } = answer
    if (status >= 200 && status < 300) return { outcome: 'sent', status, responseSnippet: said }
    const reason = `the receiver answered ${status}`
    const again = waitOrRetry(status, reason, retryAfterMs(answer.headers, now.getTime()))
    if (again) return { ...again, responseSnippet: said }
    if (status >= 300 && status < 400)
      return drop(status, `${reason}, a redirect, and Nightshift does not follow redirects`, said)
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
  too_large: "the receiver's answer is too large",
  refused_address: "Nightshift may not send to the receiver's address",
  aborted: 'the attempt was cancelled',
  protocol: "the receiver's answer is not valid HTTP",
}

function reasonOf(error: HttpError): string {
  return reasons[error.code]
}

function drop(status: number | null, reason: string, responseSnippet = ''): Delivery {
  return { outcome: 'drop', status, reason, responseSnippet }
}

/**
 * Returns the beginning of a response without the path and query of the address. The path may be a
 * credential, and error pages often repeat it.
 */
function snippet(body: Uint8Array, address: string): string {
  const { pathname = '/', search = '' } = URL.parse(address) ?? {}
  let text = Buffer.from(body).toString('utf8')
  for (const part of [search, pathname]) if (part.length > 1) text = text.replaceAll(part, '[path]')
  return inertText(text, 500)
}
