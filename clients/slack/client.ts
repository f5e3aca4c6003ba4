import { z } from 'zod'
import { HttpError, request } from '../http.ts'
import { retryAfterMs } from '../retry-after.ts'

export type SlackSettings = {
  botToken: string
  /** Both of Slack's requests to us and of the nonces on our buttons. */
  signingSecret: string
  /** Id or name; the id is what Slack answers. */
  channel: string
  /** Without a slash at its end. */
  apiUrl: string
}

export type SlackMethod = 'chat.postMessage' | 'chat.update' | 'chat.postEphemeral' | 'views.open'

/**
 * `error` is Slack's own word (`ratelimited`, `channel_not_found`), or `http_<status>`, `invalid_answer`, or the code of an
 * HttpError: then what was asked may have happened all the same.
 */
export type SlackAnswer =
  | { ok: true; status: number; channel: string | null; ts: string | null }
  | { ok: false; status: number | null; error: string; afterMs: number | null }

export type SlackClient = {
  settings: SlackSettings
  /** One call, never repeated and never throwing; what it answers holds neither token nor address. */
  call(method: SlackMethod, body: object, options?: { timeoutMs?: number }): Promise<SlackAnswer>
}

const answered = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
})

/**
 * Slack's Web API over our own HTTP: a call is one attempt, because how often and when to repeat is a row of the outbox
 * that any worker may take up.
 */
export function createSlackClient(settings: SlackSettings): SlackClient {
  return {
    settings,
    async call(method, body, { timeoutMs = 10_000 } = {}) {
      try {
        const answer = await request({
          method: 'POST',
          url: `${settings.apiUrl}/${method}`,
          headers: {
            'user-agent': 'nightshift',
            'content-type': 'application/json; charset=utf-8',
            authorization: `Bearer ${settings.botToken}`,
          },
          body: JSON.stringify(body),
          timeoutMs,
          // A message is answered with itself.
          maxBytes: 256_000,
          allow: 'private',
        })
        return read(answer.status, answer.body, retryAfterMs(answer.headers, Date.now()))
      } catch (error) {
        const code = error instanceof HttpError ? error.code : 'protocol'
        return { ok: false, status: null, error: code, afterMs: null }
      }
    },
  }
}

function read(status: number, body: Uint8Array, afterMs: number | null): SlackAnswer {
  const no = (error: string): SlackAnswer => ({ ok: false, status, error, afterMs })
  if (status === 429) return no('ratelimited')
  if (status >= 500) return no(`http_${status}`)
  const parsed = answered.safeParse(jsonOf(body))
  if (!parsed.success) return no(status === 200 ? 'invalid_answer' : `http_${status}`)
  const { ok, error, channel, ts } = parsed.data
  if (!ok) return no(/^[a-z0-9_]{1,60}$/.test(error ?? '') ? (error as string) : 'unknown_error')
  return { ok: true, status, channel: channel ?? null, ts: ts ?? null }
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    return null
  }
}
