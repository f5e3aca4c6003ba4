import { z } from 'zod'
import type { SlackSettings } from '../slack/client.ts'
import type { Given } from './process.ts'
import { isReadable, url } from './process.ts'

/** Slack with a bot. */
export const slack = z.object({
  SLACK_BOT_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'is not a token')
    .optional(),
  SLACK_SIGNING_SECRET: z.string().min(16, 'must have at least 16 characters').optional(),
  SLACK_CHANNEL: z
    .string()
    .regex(/^#?[\w-]{1,80}$/, 'is neither the id nor the name of a channel')
    .optional(),
  SLACK_API_URL: url.default('https://slack.com/api'),
})

/** Slack with a bot takes all of its settings: without the secret a button could not be believed, without `PUBLIC_URL` not be reached. */
export function slackProblems(given: Given): string[] {
  const own = ['SLACK_BOT_TOKEN', 'SLACK_SIGNING_SECRET', 'SLACK_CHANNEL'] as const
  const first = [...own, 'SLACK_API_URL'].find((name) => given[name])
  if (!first) return []
  const missing = [...own, 'PUBLIC_URL'].filter((name) => !given[name])
  const problems = missing.length > 0 ? [`${first} is set, and Slack also needs ${missing.join(', ')}`] : []
  if (given.SLACK_API_URL && isReadable(given.SLACK_API_URL)) {
    problems.push('SLACK_API_URL must be https, unless it is on this machine')
  }
  return problems
}

/** The workspace where a bot notifies and asks; null where none is set. */
export function slackSettings(config: z.infer<typeof slack>): SlackSettings | null {
  const { SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET, SLACK_CHANNEL } = config
  if (!SLACK_BOT_TOKEN || !SLACK_SIGNING_SECRET || !SLACK_CHANNEL) return null
  return {
    botToken: SLACK_BOT_TOKEN,
    signingSecret: SLACK_SIGNING_SECRET,
    channel: SLACK_CHANNEL,
    apiUrl: config.SLACK_API_URL.replace(/\/+$/, ''),
  }
}
