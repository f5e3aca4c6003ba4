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

const meanings: Record<string, 'retry' | 'drop' | 'gone'> = {
  // The bot is invited, the channel is made: people mend this while we wait.
  ...{ channel_not_found: 'retry', not_in_channel: 'retry' },
  ...{ internal_error: 'retry', fatal_error: 'retry', service_unavailable: 'retry', request_timeout: 'retry' },
  ...{ team_added_to_org: 'retry', org_login_required: 'retry', update_failed: 'retry' },
  ...{ message_not_found: 'gone', thread_not_found: 'gone', invalid_thread_ts: 'gone' },
  // A token is read at the start: no repetition has another.
  ...{ invalid_auth: 'drop', not_authed: 'drop', token_revoked: 'drop', token_expired: 'drop' },
  ...{ account_inactive: 'drop', missing_scope: 'drop', no_permission: 'drop', not_allowed_token_type: 'drop' },
  ...{ access_denied: 'drop', ekm_access_denied: 'drop', enterprise_is_restricted: 'drop' },
  ...{ is_archived: 'drop', channel_is_archived: 'drop', is_inactive: 'drop' },
  ...{
    restricted_action: 'drop',
    restricted_action_read_only_channel: 'drop',
    restricted_action_thread_locked: 'drop',
  },
  // The same bytes will not be shorter.
  ...{ msg_too_long: 'drop', msg_blocks_too_long: 'drop', invalid_blocks: 'drop', invalid_blocks_format: 'drop' },
  ...{
    no_text: 'drop',
    invalid_arguments: 'drop',
    duplicate_message_not_allowed: 'drop',
    messages_tab_disabled: 'drop',
  },
  ...{ cant_update_message: 'drop', edit_window_closed: 'drop', block_mismatch: 'drop' },
}

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
  const meaning = error === 'refused_address' ? 'drop' : (meanings[error] ?? (/^http_4/.test(error) ? 'drop' : 'retry'))
  return meaning === 'retry' ? { outcome: 'retry', status, reason, afterMs } : { outcome: meaning, status, reason }
}
