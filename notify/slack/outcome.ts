import type { SlackAnswer } from '../../clients/slack/client.ts'

/**
 * What Slack's answer means for a delivery. `wait`: no attempt at all, Slack was busy. `gone`: the message that was to be
 * changed or answered is not there; a new one takes its place.
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
/** A token is read at the start, and the same bytes will not be shorter: no repetition is any better. */
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

/** A word that we do not know is tried again: a message too many of tries ends, one that was dropped is lost. */
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
