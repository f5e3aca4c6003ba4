import type { Approval, ApprovalStatus } from '../domain/approval.ts'
import { formatDown, formatList, formatMinute } from '../domain/format.ts'
import { formatAlsoAsked, formatProof, listDecisions, parseRehearsal } from '../domain/format-approval.ts'
import type { Incident } from '../domain/incident.ts'
import { planOfDryRun } from '../domain/placement.ts'
import { resourceKey } from '../domain/registry.ts'
import { actions, context, header, linkButton, type SlackMessage, section, slackMessage } from './notification.ts'
import { exactText, type PlainText, plainText, slackLimits } from './text.ts'

const maxArgumentChars = 2_900
const maxReasonChars = 1_500
const maxDryRunChars = 800
const maxProofChars = 500
const maxFoundChars = 230
const maxRehearsedLines = 12
const maxTargets = 6

const headings: Record<ApprovalStatus, string> = {
  pending: 'Approval needed',
  approved: 'Approved',
  denied: 'Denied',
  expired: 'Expired',
  withdrawn: 'Withdrawn',
  consumed: 'Approved',
}

/** Why it is asked, by the rows of its run: the line about the cause, and the newest findings in sentences, oldest first. */
export type CardGrounds = {
  cause: string | null
  found: readonly string[]
  /** How many more calls of the same answer wait; the next is asked here when its turn comes. */
  alsoAsked?: number
}

/**
 * What is asked of people, in the order they ask for it, and what was decided once it is. Approve and Deny are there only
 * while it is pending, never for `critical`, and only where the exact arguments can be read here: nobody agrees to
 * what was cut or altered on its way. `url` is the card's page, `button` what the two buttons carry.
 */
export function renderCard(
  approval: Approval,
  incident: Incident,
  url: string,
  button: string,
  { cause, found, alsoAsked = 0 }: CardGrounds = { cause: null, found: [] },
): SlackMessage {
  const settled = listDecisions(approval)
  const isPending = approval.status === 'pending'
  const heading = `${headings[approval.status]}: ${approval.tool} on ${targetsOf(approval)}`
  const exact = exactText(JSON.stringify(approval.arguments), maxArgumentChars)
  const mayDecideHere = isPending && approval.risk !== 'critical' && exact !== null
  return slackMessage(heading.slice(0, 1_000), [
    header(heading),
    section(`What: ${approval.tool} on ${targetsOf(approval)}`, 1_000),
    section(`Risk: ${approval.risk}, ${approval.reversible ? 'reversible' : 'NOT reversible'}`),
    section('Arguments, exactly:'),
    section(exact ?? plainText('They cannot be shown here in full and as they are. Read them on the card.', 200)),
    section(`Why: ${approval.reason.trim() || '(no reason given)'}`, maxReasonChars),
    ...(cause === null ? [] : [section(cause, maxProofChars)]),
    ...found.map((sentence) => section(`Found: ${sentence}`, maxFoundChars)),
    section(formatProof(approval.dryRun.proof), maxProofChars),
    section(`Dry run: ${approval.dryRun.possible ? approval.dryRun.summary : 'none possible'}`, maxDryRunChars),
    ...rehearsed(approval),
    ...staysDown(approval),
    ...(isPending && alsoAsked > 0
      ? [
          section(
            `This${formatAlsoAsked(alsoAsked)}: the card has all of them, here the next is asked when its turn comes.`,
          ),
        ]
      : []),
    ...(isPending
      ? [section(whoMay(approval, incident)), section(`Expires: ${formatMinute(approval.expiresAt)}`)]
      : []),
    ...(settled.length > 0 ? [section(settled.join('. '), slackLimits.section / 2)] : []),
    ...actions([
      ...(mayDecideHere ? [approve(approval, button), deny(button)] : []),
      ...linkButton(isPending ? 'Review request' : 'Open the card', url),
    ]),
    context(`Nightshift, ${approval.id}, ${approval.incidentId}`),
  ])
}

function targetsOf({ targets }: Approval): string {
  const shown = targets.slice(0, maxTargets).map(resourceKey).join(', ') || 'no named target'
  return targets.length > maxTargets ? `${shown} and ${targets.length - maxTargets} more` : shown
}

/** The beginning of what was found out beforehand, and what was not tried; the card has all of it. */
function rehearsed({ dryRun }: Approval): object[] {
  const told = parseRehearsal(dryRun.details)
  if (!told) return []
  const lines = told.lines.slice(0, maxRehearsedLines)
  const left = told.lines.length - lines.length
  return [
    ...(lines.length > 0
      ? [section([...lines, ...(left > 0 ? [`and ${left} lines more`] : [])].join('\n'), maxDryRunChars)]
      : []),
    ...(told.untried.length > 0 ? [section(told.untried.join(' '), maxDryRunChars)] : []),
  ]
}

/** Whom a plan leaves without a place: nobody agrees to that unread. */
function staysDown({ dryRun }: Approval): object[] {
  const down = planOfDryRun(dryRun.details)?.unplaced ?? []
  return down.length === 0
    ? []
    : [section(`${formatDown(down.length)}: ${formatList(down.map(({ vm }) => vm))}`, maxDryRunChars)]
}

function whoMay({ risk, required }: Approval, { type }: Incident): string {
  const people = required === 1 ? 'one person' : `${required} people`
  const where = risk === 'critical' ? ', signed in on the card: never in Slack' : ''
  return `Who may: ${people} who may decide about ${risk} risk and ${type}${where}`
}

function approve(approval: Approval, value: string): object {
  const question: PlainText = plainText(`${approval.tool} on ${targetsOf(approval)}`, slackLimits.confirmText)
  return {
    type: 'button',
    text: plainText('Approve', slackLimits.buttonText),
    action_id: 'approve',
    value,
    // Twice, as everywhere: a thumb on a phone is not a decision.
    confirm: {
      title: plainText('Let this run?', slackLimits.confirmTitle),
      text: question,
      confirm: plainText('Approve', 30),
      deny: plainText('Back', 30),
    },
  }
}

function deny(value: string): object {
  return { type: 'button', text: plainText('Deny', slackLimits.buttonText), action_id: 'deny', value }
}
