import type { z } from 'zod'
import { type OperatorRow, operatorElsewhere, refusalToDecide } from '../../db/access/operators.ts'
import { decide } from '../../db/approvals/decide.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { mintDecisionToken, type SaidDecision } from '../../db/approvals/tokens.ts'
import { suspectSlackRequest } from '../../db/outbox/slack-requests.ts'
import { systemScope } from '../../db/scope.ts'
import { type Approval, type DenialCategory, denialCategory } from '../../domain/approval.ts'
import { formatMinute } from '../../domain/format.ts'
import { listDecisions } from '../../domain/format-approval.ts'
import { spellCommands } from '../../domain/own-command.ts'
import type { Principal } from '../../domain/permissions.ts'
import type { SlackClient } from '../../notify/slack/client.ts'
import {
  approvalOfButton,
  type denialMetadata,
  isButtonOf,
  type Press,
  type SlackDenial,
  type SlackSpot,
} from '../../notify/slack/interaction.ts'
import { fallbackText, isLink, plainText, slackLimits } from '../../notify/slack/notification.ts'
import { type ApiDeps, type Context, getCallerAddress } from '../deps.ts'
import { Problem } from '../http/problem.ts'
import { failedAuthentications, limitDecisions, networkOf } from '../http/rate-limits.ts'
import { askForDecision } from './approval-detail.ts'
import { wake } from './approvals.ts'

/**
 * Carries out a pressed button or the form of a denial. The Slack member acts as the operator with
 * this member id, by the usual rules. Only the member sees the result, and the card in the channel
 * follows the rows.
 */
export async function actOn(deps: ApiDeps, slack: SlackClient, c: Context, asked: Press | SlackDenial): Promise<void> {
  const approval = await approvalOf(deps, slack, asked.button)
  const url = approval && cardUrl(deps, approval.id)
  const say = (text: string) => answerPrivately(deps, slack, asked, text, { url, word: 'Open the card' })
  if (!approval) {
    const event = {
      code: 'FOREIGN_BUTTON',
      subject: asked.user,
      detail: 'a button that does not belong to this Nightshift',
    }
    await recordSuspicion(deps, c, approvalOfButton(asked.button), event)
    return await say('This button does not belong to this Nightshift, or it is too old. Nothing was decided.')
  }
  const operator = await operatorElsewhere(deps.db, 'slackUserId', asked.user)
  if (!operator) {
    return await say(
      `Nothing was decided: your Slack member is not linked to a user. Decide on the card, signed in, or ask an admin to run: nightshift operators set NAME --slack ${asked.user}`,
    )
  }
  // Treats a button for a critical call as forged, because no message has such a button.
  if (approval.risk === 'critical') {
    const event = { code: 'CRITICAL_BUTTON', subject: operator.name, detail: 'critical risk is never decided in Slack' }
    await recordSuspicion(deps, c, approval.id, event)
    return await say('Nothing was decided: critical risk can only be decided on the card.')
  }
  if (approval.status !== 'pending') return await say(await alreadySettled(deps, approval))
  if (asked.kind === 'press' && asked.action === 'deny') {
    const refusal = await refusalToDecide(deps.db, operator.id, approval)
    if (refusal) return await say(`Nothing was decided: ${refusal}.`)
    const { channel, thread } = asked.spot
    const view = denialModal(approval, { button: asked.button, channel, thread })
    // Opens nothing for a slow request, because a trigger is valid for three seconds.
    const opened = await slack.call('views.open', { trigger_id: asked.trigger, view }, { timeoutMs: 3_000 })
    return opened.ok
      ? undefined
      : await say('Nothing was decided: Slack could not ask you for a reason. Deny on the card.')
  }
  await say(await decideAs(deps, c, operator, approval, asked))
}

/** Finds the approval of a button, if Nightshift made the button for this approval and action. */
async function approvalOf({ db }: ApiDeps, { settings }: SlackClient, button: string): Promise<Approval | null> {
  const id = approvalOfButton(button)
  const [approval] = id ? await listApprovals(systemScope(db), { id }, { before: null, limit: 1 }) : []
  return approval && isButtonOf(settings.signingSecret, approval, button) ? approval : null
}

/** Creates a decision token and decides with it. Returns the reply for the member. */
async function decideAs(
  deps: ApiDeps,
  c: Context,
  operator: OperatorRow,
  approval: Approval,
  asked: Press | SlackDenial,
): Promise<string> {
  const { db, metrics } = deps
  const principal: Principal = {
    tokenId: `slack:${asked.user}`,
    operatorId: operator.id,
    scopes: [],
    role: operator.role,
    name: operator.name,
  }
  try {
    await limitDecisions(db, c, principal, approval.id)
  } catch (error) {
    if (error instanceof Problem) return `Nothing was decided: ${error.message}`
    throw error
  }
  const said: SaidDecision =
    asked.kind === 'denial'
      ? { decision: 'deny', reason: asked.words ?? asked.category.replaceAll('_', ' '), category: asked.category }
      : { decision: 'approve' }
  const minted = await mintDecisionToken(db, principal, approval.id, said)
  if (minted.outcome === 'gone') return await settledByNow(deps, approval.id, minted.message)
  if (minted.outcome !== 'minted') return `Nothing was decided: ${minted.message}.`
  const at = { approvalId: approval.id, incidentId: null, token: minted.token, caller: operator.id, via: 'slack' }
  const fresh = said.decision === 'approve' ? { asked: await askForDecision(deps, approval.id) } : {}
  const decided = await decide(db, { ...said, ...at, ...fresh })
  if (!('approvalId' in decided)) {
    metrics.refusedDecisions.inc({ outcome: decided.outcome })
    const message = 'message' in decided ? decided.message : 'there is no such approval'
    if (decided.outcome !== 'conflict' && decided.outcome !== 'gone') return `Nothing was decided: ${message}.`
    return await settledByNow(deps, approval.id, message)
  }
  if (decided.outcome === 'repeated') return 'You had already made this decision.'
  await wake(deps, decided.incidentId)
  return decided.status === 'pending'
    ? 'Your decision is recorded. Another person must approve too.'
    : 'Your decision is recorded.'
}

async function settledByNow(deps: ApiDeps, approvalId: string, otherwise: string): Promise<string> {
  const [now] = await listApprovals(systemScope(deps.db), { id: approvalId }, { before: null, limit: 1 })
  if (!now) return `Nothing was decided: ${otherwise}.`
  // Handles an approval that has expired although no row records this yet.
  if (now.status === 'pending') return `Nothing was decided: the approval expired at ${formatMinute(now.expiresAt)}.`
  return await alreadySettled(deps, now)
}

/**
 * Names the decider, time and origin of a decision, and a further approval for the call if one was
 * requested.
 */
async function alreadySettled(deps: ApiDeps, approval: Approval): Promise<string> {
  const settled = listDecisions(approval).join('. ') || `The approval is ${approval.status} already`
  const filter = { status: 'pending', incidentId: approval.incidentId } as const
  const [pending] = await listApprovals(systemScope(deps.db), filter, { before: null, limit: 1 })
  const anew =
    pending && pending.id !== approval.id && pending.callId === approval.callId
      ? ` The approval was requested again: ${cardUrl(deps, pending.id)}`
      : ''
  return `Nothing was decided by this button. ${settled}.${anew}`
}

function cardUrl({ publicUrl }: ApiDeps, id: string): string {
  return `${publicUrl?.replace(/\/+$/, '')}/approvals/${id}`
}

const labels: Record<DenialCategory, string> = {
  wrong_target: 'Wrong target',
  too_risky: 'Too risky',
  wrong_time: 'Wrong time',
  need_evidence: 'Needs more evidence',
  other: 'Something else: say what',
}

/** Builds a form for the reason, because the agent reads the category and the text. */
function denialModal(approval: Approval, carried: z.infer<typeof denialMetadata>): object {
  return {
    type: 'modal',
    callback_id: 'deny',
    private_metadata: JSON.stringify(carried),
    title: plainText('Deny', 24),
    submit: plainText('Deny', 24),
    close: plainText('Back', 24),
    blocks: [
      { type: 'section', text: plainText(`${approval.tool}: ${approval.dryRun.summary}`, 1_000) },
      {
        type: 'input',
        block_id: 'category',
        label: plainText('Why not?', 100),
        element: {
          type: 'static_select',
          action_id: 'category',
          options: denialCategory.options.map((value) => ({ text: plainText(labels[value], 75), value })),
        },
      },
      {
        type: 'input',
        block_id: 'words',
        optional: true,
        label: plainText('In words, for the agent', 100),
        element: { type: 'plain_text_input', action_id: 'words', multiline: true, max_length: 2_000 },
      },
    ],
  }
}

/** Replies only to one member, with a link to the page. A failure of the reply is only logged. */
export async function answerPrivately(
  { log, commandPrefix }: ApiDeps,
  slack: SlackClient,
  to: { user: string; spot: SlackSpot },
  words: string,
  link: { url: string | null; word: string },
): Promise<void> {
  const text = spellCommands(words, commandPrefix)
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
  if (!answer.ok) log.warn({ error: answer.error }, 'a message to a member of Slack could not be sent')
}

/** Records a suspicious request from Slack. */
export async function recordSuspicion(
  { db }: ApiDeps,
  c: Context,
  approvalId: string | null,
  event: { code: string; subject: string; detail: string },
): Promise<void> {
  const address = getCallerAddress(c)
  await suspectSlackRequest(db, approvalId, { ...event, address, network: networkOf(address) }, failedAuthentications)
}
