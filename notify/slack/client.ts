import { z } from 'zod'
import { HttpError, request, retryAfterMs } from '../../clients/http.ts'

export type SlackSettings = {
  botToken: string
  /** The secret that verifies Slack's requests and makes the nonces of Nightshift's buttons. */
  signingSecret: string
  /** The id or name of the channel. Slack's responses contain the id. */
  channel: string
  /** The base address, without a final slash. */
  apiUrl: string
}

export type SlackMethod = 'chat.postMessage' | 'chat.update' | 'chat.postEphemeral' | 'views.open'

/**
 * The response of Slack. `error`: Slack's code (`ratelimited`, `channel_not_found`),
 * `http_<status>`, `invalid_answer`, or the code of an HttpError. After an HttpError, Slack may
 * still have executed the call.
 */
type SlackAnswer =
  | { ok: true; status: number; channel: string | null; ts: string | null }
  | { ok: false; status: number | null; error: string; afterMs: number | null }

export type SlackClient = {
  settings: SlackSettings
  /** Makes one call, once. Never throws. The result contains no token and no address. */
  call(method: SlackMethod, body: object, options?: { timeoutMs?: number }): Promise<SlackAnswer>
}

const answered = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
})

/**
 * Makes a client for Slack's Web API. A call is one attempt: a row of the outbox decides how often
 * and when to repeat the call, and any worker can take the row.
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
          // Allows for the whole message, because Slack returns it.
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

/**
 * The meaning of Slack's response for a delivery. `wait`: Slack was busy, and the call does not
 * count as an attempt. `gone`: the message to change or to reply to no longer exists, and a new
 * message replaces it.
 */
export type SlackOutcome =
  | { outcome: 'sent'; status: number; place: { channel: string; ts: string } | null }
  | { outcome: 'wait'; status: number | null; afterMs: number; reason: string }
  | { outcome: 'gone' | 'drop'; status: number | null; reason: string }
  | { outcome: 'retry'; status: number | null; afterMs: number | null; reason: string }

const words = (text: string) => text.trim().split(/\s+/)

/**
 * Errors that people or Slack may correct before the next attempt: a bot is invited, a channel is
 * created, Slack recovers.
 */
const passing = words(`
  channel_not_found not_in_channel internal_error fatal_error service_unavailable request_timeout team_added_to_org
  org_login_required update_failed`)
const goneWords = words('message_not_found thread_not_found invalid_thread_ts')
/** Errors that a repetition cannot fix, such as an invalid token or a message that is too long. */
const lasting = words(`
  invalid_auth not_authed token_revoked token_expired account_inactive missing_scope no_permission not_allowed_token_type
  access_denied ekm_access_denied enterprise_is_restricted is_archived channel_is_archived is_inactive restricted_action
  restricted_action_read_only_channel restricted_action_thread_locked msg_too_long msg_blocks_too_long invalid_blocks
  invalid_blocks_format no_text invalid_arguments duplicate_message_not_allowed messages_tab_disabled
  cant_update_message edit_window_closed block_mismatch`)

const meanings = new Map<string, 'retry' | 'drop' | 'gone'>([
  ...passing.map((word) => [word, 'retry'] as const),
  ...goneWords.map((word) => [word, 'gone'] as const),
  ...lasting.map((word) => [word, 'drop'] as const),
])

/**
 * Returns the meaning of a response. An unknown error is retried, because a dropped message is
 * lost. The number of retries is limited.
 */
export function slackOutcome(answer: SlackAnswer): SlackOutcome {
  const { status } = answer
  if (answer.ok) {
    const { channel, ts } = answer
    return { outcome: 'sent', status: answer.status, place: channel && ts ? { channel, ts } : null }
  }
  const { error, afterMs } = answer
  const reason = `Slack: ${error}`
  if (error === 'ratelimited' || error === 'rate_limited') {
    return { outcome: 'wait', status, reason, afterMs: afterMs ?? 30_000 }
  }
  const meaning =
    error === 'refused_address' ? 'drop' : (meanings.get(error) ?? (/^http_4/.test(error) ? 'drop' : 'retry'))
  return meaning === 'retry' ? { outcome: 'retry', status, reason, afterMs } : { outcome: meaning, status, reason }
}
