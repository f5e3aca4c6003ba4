import type { Approval, ApprovalStatus, Evidence } from '../../domain/approval.ts'
import { type CardSection, cardSections, newestLookOf } from '../../domain/card-sections.ts'
import { type EscalationReport, reportText } from '../../domain/escalation.ts'
import { capitalize, formatMinute } from '../../domain/format.ts'
import { formatAlsoAsked, listDecisions, parseRehearsal } from '../../domain/format-approval.ts'
import { deathsOfDryRun, hostsToSay } from '../../domain/format-death.ts'
import { closedStatuses, type Incident, type IncidentStatus, incidentActions } from '../../domain/incident.ts'
import { resourceKey } from '../../domain/registry.ts'
import { statusWords } from '../../domain/status-words.ts'
import { ungradedTypes } from '../../domain/trust.ts'
import { oneLine } from '../words.ts'
import type { IncidentPress } from './interaction.ts'
import {
  actions,
  context,
  exactText,
  field,
  header,
  linkButton,
  type PlainText,
  plainText,
  type SlackMessage,
  section,
  sectionOfLines,
  slackLimits,
  slackMessage,
} from './notification.ts'

const maxApprovals = 5
const maxResolutionChars = 2_500
const maxLineChars = 500

type Root = {
  incident: Incident
  report: EscalationReport | null
  approvals: readonly Approval[]
  /** The incident's page. */
  url: string
  /** What the buttons carry. */
  buttons: ButtonValue
}

/**
 * The first message of an incident's thread: its state now, the finding, who has it, and who
 * decided what.
 */
export function renderRoot({ incident, report, approvals, url, buttons }: Root): SlackMessage {
  const heading = `${capitalize(incident.severity)}: ${incident.title}`
  const resource = incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'unknown'
  const said = report ? withoutName(report) : (incident.resolution ?? '')
  return slackMessage(`${heading.slice(0, 1_000)} (${statusWords(incident)})`, [
    header(heading),
    ...(heading.length > slackLimits.header ? [section(incident.title, slackLimits.section)] : []),
    {
      type: 'section',
      fields: [
        field(`Status: ${statusWords(incident)}`),
        field(`Severity: ${incident.severity}`),
        field(`Type: ${incident.type}`),
        field(`Resource: ${resource}`),
      ],
    },
    ...(said.trim() ? [sectionOfLines(said, maxResolutionChars)] : []),
    ...approvals
      .slice(0, maxApprovals)
      .map((approval) =>
        section(`${approval.tool}: ${listDecisions(approval).join('. ') || 'approval requested'}`, maxLineChars),
      ),
    ...actions([
      ...ownerButtons(incident, buttons),
      ...causeButtons(incident, buttons),
      ...linkButton('Open incident', url),
    ]),
    context(`Nightshift, ${incident.id}, since ${formatMinute(incident.createdAt)}`),
  ])
}

/** The report as text; its first line is what the message is headed with. */
function withoutName(report: EscalationReport): string {
  return reportText({ ...report, name: '' })
    .split('\n')
    .slice(1)
    .join('\n')
}

type ButtonValue = (action: IncidentPress) => string

const button = (value: ButtonValue, action: IncidentPress, word: string) => ({
  type: 'button',
  action_id: action,
  value: value(action),
  text: plainText(word, slackLimits.buttonText),
})

/** Take while it can be taken, Give back while somebody has it. */
function ownerButtons({ status, owner }: Incident, value: ButtonValue): object[] {
  if (owner) return [button(value, 'give_back', 'Give back')]
  return (incidentActions.take as IncidentStatus[]).includes(status) ? [button(value, 'take', 'Take')] : []
}

/** What the cause was worth, in one press, once it is closed and the agent said one. */
function causeButtons({ status, attempt, type }: Incident, value: ButtonValue): object[] {
  if (!closedStatuses.includes(status) || attempt === 0 || ungradedTypes.includes(type)) return []
  return [
    button(value, 'cause_right', 'Cause right'),
    button(value, 'cause_partly', 'Partly right'),
    button(value, 'cause_wrong', 'Cause wrong'),
  ]
}

const maxArgumentChars = 2_900
/** Lines of a card's section; those that count for a decision come first. */
const maxSectionChars: Partial<Record<CardSection['name'], number>> = { reason: 1_800, against: 1_500 }
const maxOtherChars = 500
const maxDryRunChars = 800
const maxFindings = 4
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

/**
 * The reasons by the run's rows: the line about the cause, and the newest findings in sentences,
 * oldest first.
 */
export type CardGrounds = {
  cause: string | null
  evidence: readonly Evidence[]
  /** How many more calls of the same answer wait; the next is asked here when its turn comes. */
  alsoAsked?: number
}

/**
 * A question in the order of its parts, and its decision. Approve and Deny are there only while it
 * is pending, never for `critical`, and only where the exact arguments are readable here: nobody
 * agrees to a cut or altered text. `url`: the card's page; `button`: what the two buttons carry.
 */
export function renderCard(
  approval: Approval,
  incident: Incident,
  url: string,
  button: string,
  { cause, evidence, alsoAsked = 0 }: CardGrounds = { cause: null, evidence: [] },
): SlackMessage {
  const settled = listDecisions(approval)
  const isPending = approval.status === 'pending'
  const heading = `${headings[approval.status]}: ${approval.tool} on ${targetsOf(approval)}`
  const exact = exactText(JSON.stringify(approval.arguments), maxArgumentChars)
  // What only a person can say of a host has no button.
  const isSettled = hostsToSay(deathsOfDryRun(approval.dryRun.details)).length === 0
  const mayDecideHere = isPending && approval.risk !== 'critical' && exact !== null && isSettled
  return slackMessage(heading.slice(0, 1_000), [
    header(heading),
    section(`What: ${approval.tool}`, maxOtherChars),
    section(`Risk: ${approval.risk}, ${approval.reversible ? 'reversible' : 'NOT reversible'}`),
    ...cardSections(approval, {
      ...{ isOpen: isPending, moment: formatMinute, cause },
      ...{ about: incident.resource, lookedAt: newestLookOf(evidence) },
    }).flatMap((each) => [sectionOfCard(each), ...(each.name === 'reason' ? listFindings(evidence) : [])]),
    section(`Dry run: ${approval.dryRun.possible ? approval.dryRun.summary : 'none possible'}`, maxDryRunChars),
    ...rehearsed(approval),
    section('Arguments, exactly:'),
    section(exact ?? plainText('Slack cannot show them exactly. Read them on the card.', 200)),
    ...(isPending && alsoAsked > 0
      ? [
          section(
            `This${formatAlsoAsked(alsoAsked)}: the card shows all of them. Slack asks about the next when its turn comes.`,
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

/** The newest findings, in the sentences of their tools, oldest first. */
function listFindings(evidence: readonly Evidence[]): object[] {
  const said = evidence.filter(({ what, isSaid }) => what === 'look' && isSaid)
  return said.slice(-maxFindings).map(({ found }) => section(`Found: ${found}`, maxFoundChars))
}

/** Only a title begins a line by itself: no sentence passes for a section. */
function sectionOfCard({ name, title, sentences }: CardSection): object {
  return sectionOfLines(`${title}: ${sentences.map(oneLine).join('\n• ')}`, maxSectionChars[name] ?? maxOtherChars)
}

/** The beginning of what was found out beforehand; the card has all of it. */
function rehearsed({ dryRun }: Approval): object[] {
  const found = parseRehearsal(dryRun.details)?.lines ?? []
  const lines = found.slice(0, maxRehearsedLines)
  const left = found.length - lines.length
  return lines.length > 0
    ? [sectionOfLines([...lines, ...(left > 0 ? [`and ${left} lines more`] : [])].join('\n'), maxDryRunChars)]
    : []
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
