import { setTimeout as sleep } from 'node:timers/promises'
import type { Hono } from 'hono'
import { approvalOfButton } from '../../clients/slack/button.ts'
import { judgeSignature } from '../../clients/slack/signature.ts'
import { takeSlackRequest } from '../../db/slack/requests.ts'
import type { ApiDeps } from '../deps.ts'
import type { Context, Env } from '../http/context.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { recordSuspicion } from './answers.ts'
import { actOn } from './decide.ts'
import { pressOwner } from './own.ts'
import { type Interaction, readInteraction } from './payload.ts'

const path = '/slack/interactions'
/** Slack waits three seconds and then shows its member a failure; what takes longer goes on behind the answer. */
const answerWithinMs = 2_000

/**
 * The door of Slack's buttons. No cookie and no token opens it: only what Slack signed, these minutes, once. The body is
 * verified as it came before anything in it is read.
 */
export function slackRoutes(app: Hono<Env>, deps: ApiDeps): void {
  app.use(path, limitBody)
  app.post(path, async (c) => {
    const { slack } = deps
    if (!slack) throw new Problem(404, 'NOT_FOUND', 'Slack is not configured here.')
    const interaction = await verified(deps, c, slack.settings.signingSecret)
    if (interaction.kind === 'other') return c.body(null, 200)
    if (interaction.kind === 'denial' && interaction.category === 'other' && interaction.words === null) {
      return c.json({ response_action: 'errors', errors: { words: 'Say why not: the agent reads it.' } })
    }
    const acted =
      interaction.kind === 'owner' ? pressOwner(deps, slack, c, interaction) : actOn(deps, slack, c, interaction)
    const acting = acted.catch((error) => {
      deps.log.error({ err: error }, 'a button of Slack came to nothing')
    })
    await Promise.race([acting, sleep(answerWithinMs, undefined, { ref: false })])
    return c.body(null, 200)
  })
}

async function verified(deps: ApiDeps, c: Context, secret: string): Promise<Interaction> {
  const { db } = deps
  const body = new Uint8Array(await c.req.arrayBuffer())
  const timestamp = c.req.header('x-slack-request-timestamp')
  const signature = c.req.header('x-slack-signature')
  const verdict = judgeSignature(secret, { timestamp, signature, body }, Date.now())
  if (verdict === 'forged') {
    // Nothing in it is believed, not even which incident it is about.
    await recordSuspicion(deps, c, null, {
      code: 'FORGED_REQUEST',
      subject: 'slack',
      detail: "a request without Slack's signature",
    })
    throw refused()
  }
  const interaction = readInteraction(Buffer.from(body).toString('utf8'))
  const isFirst = verdict === 'good' && (await takeSlackRequest(db, signature as string))
  if (isFirst) return interaction
  const code = verdict === 'stale' ? 'STALE_REQUEST' : 'REPLAYED_REQUEST'
  const { user, button } = interaction.kind === 'other' ? { user: 'unknown', button: '' } : interaction
  const detail = `a request with Slack's signature that ${verdict === 'stale' ? 'is not of these minutes' : 'was here before'}`
  await recordSuspicion(deps, c, approvalOfButton(button), { code, subject: user, detail })
  throw refused()
}

/** The same answer for every reason, so that guessing reveals nothing. */
function refused(): Problem {
  return new Problem(401, 'NOT_FROM_SLACK', 'This was not sent by Slack, or not just now.')
}
