import type { SlackClient } from '../../clients/slack/client.ts'
import { fallbackText, isLink, plainText, slackLimits } from '../../clients/slack/text.ts'
import { suspectSlackRequest } from '../../db/slack/requests.ts'
import type { ApiDeps } from '../deps.ts'
import { failedAuthentications, networkOf } from '../http/authenticate.ts'
import { type Context, getCallerAddress } from '../http/context.ts'
import type { SlackSpot } from './payload.ts'

/** Answers one member alone, with a link to the page. A failure is only logged: the card stays right without it. */
export async function answerPrivately(
  { log }: ApiDeps,
  slack: SlackClient,
  to: { user: string; spot: SlackSpot },
  text: string,
  link: { url: string | null; word: string },
): Promise<void> {
  const answer = await slack.call('chat.postEphemeral', {
    channel: to.spot.channel,
    user: to.user,
    ...(to.spot.thread !== null && { thread_ts: to.spot.thread }),
    text: fallbackText(text, 1_000),
    blocks: [
      { type: 'section', text: plainText(text, slackLimits.section) },
      ...(link.url !== null && isLink(link.url)
        ? [
            {
              type: 'actions',
              elements: [
                {
                  type: 'button',
                  action_id: 'open',
                  url: link.url,
                  text: plainText(link.word, slackLimits.buttonText),
                },
              ],
            },
          ]
        : []),
    ],
  })
  if (!answer.ok) log.warn({ error: answer.error }, 'a member of Slack could not be told')
}

/** Writes down what came to Slack's door and looks like an attack. */
export async function recordSuspicion(
  { db }: ApiDeps,
  c: Context,
  approvalId: string | null,
  event: { code: string; subject: string; detail: string },
): Promise<void> {
  const address = getCallerAddress(c)
  await suspectSlackRequest(db, approvalId, { ...event, address, network: networkOf(address) }, failedAuthentications)
}
