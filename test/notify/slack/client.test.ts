import { expect, test } from '@jest/globals'
import { slackOutcome } from '../../../notify/slack/client.ts'

const no = (error: string, more: { status?: number | null; afterMs?: number | null } = {}) =>
  slackOutcome({ ok: false, status: 200, afterMs: null, error, ...more })

test.each([
  ['ratelimited', 'wait'],
  ['rate_limited', 'wait'],
  // An invitation mends it.
  ['not_in_channel', 'retry'],
  ['channel_not_found', 'retry'],
  ['http_503', 'retry'],
  ['timeout', 'retry'],
  ['connect', 'retry'],
  ['invalid_answer', 'retry'],
  // Slack learns new words: a message that was dropped is lost, tries end.
  ['a_word_of_tomorrow', 'retry'],
  ['message_not_found', 'gone'],
  ['thread_not_found', 'gone'],
  ['invalid_auth', 'drop'],
  ['token_revoked', 'drop'],
  ['missing_scope', 'drop'],
  ['is_archived', 'drop'],
  ['msg_too_long', 'drop'],
  ['invalid_blocks', 'drop'],
  ['http_404', 'drop'],
  ['refused_address', 'drop'],
])('when Slack says %s, a message is to %s', (error, outcome) => {
  expect(no(error)).toMatchObject({ outcome, reason: `Slack: ${error}` })
})

test('Slack is waited for as long as it says, and half a minute if it names no time', () => {
  expect(no('ratelimited', { status: 429, afterMs: 7_000 })).toMatchObject({ afterMs: 7_000 })
  expect(no('ratelimited', { status: 429 })).toMatchObject({ afterMs: 30_000 })
})
