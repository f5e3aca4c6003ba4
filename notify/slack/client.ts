import { z } from 'zod'
import { HttpError, request, retryAfterMs } from '../../clients/http.ts'

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
 * `error`: Slack's word (`ratelimited`, `channel_not_found`), `http_<status>`, `invalid_answer`, or
 * an HttpError's code: then the call may have happened all the same.
 */
type SlackAnswer =
  | { ok: true; status: number; channel: string | null; ts: string | null }
  | { ok: false; status: number | null; error: string; afterMs: number | null }

export type SlackClient = {
  settings: SlackSettings
  /** One call, never repeated and never throwing; its answer holds neither token nor address. */
  call(method: SlackMethod, body: object, options?: { timeoutMs?: number }): Promise<SlackAnswer>
}

const answered = z.object({
  ok: z.boolean(),
  error: z.string().optional(),
  channel: z.string().optional(),
  ts: z.string().optional(),
})

/**
 * Slack's Web API over our own HTTP. A call is one attempt: a row of the outbox, which any worker
 * takes up, says how often and when to repeat.
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

/**
 * The meaning of Slack's answer for a delivery. `wait`: no attempt, Slack was busy. `gone`: the
 * message to change or answer is not there; another takes its place.
 */
export type SlackOutcome =
  | { outcome: 'sent'; status: number; place: { channel: string; ts: string } | null }
  | { outcome: 'wait'; status: number | null; afterMs: number; reason: string }
  | { outcome: 'gone' | 'drop'; status: number | null; reason: string }
  | { outcome: 'retry'; status: number | null; afterMs: number | null; reason: string }

const words = (text: string) => text.trim().split(/\s+/)

/** People fix these while we wait: the bot is invited, the channel is made, Slack gets well. */
const passing = words(`
  channel_not_found not_in_channel internal_error fatal_error service_unavailable request_timeout team_added_to_org
  org_login_required update_failed`)
const goneWords = words('message_not_found thread_not_found invalid_thread_ts')
/** A token is read at the start, and the same bytes get no shorter: no repetition is better. */
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

/** An unknown word is tried again: a message with too many tries ends, a dropped one is lost. */
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
