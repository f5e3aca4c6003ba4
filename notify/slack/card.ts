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
  /** The address of the incident's page. */
  url: string
  /** Returns the value of the button for an action. */
  buttons: ButtonValue
}

/**
 * Renders the first message of an incident's thread: the state of the incident, the findings, the
 * decisions, and buttons for the owner.
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

/**
 * Returns the report as text without its first line, because the message already has this line as
 * its heading.
 */
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

/** Returns the button Take while the incident can be taken, or Give back while somebody owns it. */
function ownerButtons({ status, owner }: Incident, value: ButtonValue): object[] {
  if (owner) return [button(value, 'give_back', 'Give back')]
  return (incidentActions.take as IncidentStatus[]).includes(status) ? [button(value, 'take', 'Take')] : []
}

/**
 * Returns buttons that grade the cause with one press. Empty unless the incident was investigated
 * and is closed.
 */
function causeButtons({ status, attempt, type }: Incident, value: ButtonValue): object[] {
  if (!closedStatuses.includes(status) || attempt === 0 || ungradedTypes.includes(type)) return []
  return [
    button(value, 'cause_right', 'Cause right'),
    button(value, 'cause_partly', 'Partly right'),
    button(value, 'cause_wrong', 'Cause wrong'),
  ]
}

const maxArgumentChars = 2_900
/**
 * Maximum number of characters of some sections of a card. Sections that matter most for a decision
 * get more characters.
 */
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
 * The reasons for an approval, from the rows of the run: the statement about the cause, and the
 * newest findings as sentences, oldest first.
 */
export type CardGrounds = {
  cause: string | null
  evidence: readonly Evidence[]
  /**
   * How many further calls of the same turn wait for approval. Slack asks about one call at a time.
   */
  alsoAsked?: number
}

/**
 * Renders an approval, its parts in order, and the decision. The card has the buttons Approve and
 * Deny only while the approval is pending, and never for `critical` risk. It also has neither
 * button if Slack cannot show the exact arguments, because nobody should approve a text that was
 * cut or altered. `url`: the page of the approval. `button`: the value of both buttons.
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
  // Shows no buttons if a person must first state facts about a host, which is not possible in
  // Slack.
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
    section(exact ?? plainText('Slack cannot show the arguments exactly. Read them on the card.', 200)),
    ...(isPending && alsoAsked > 0
      ? [
          section(
            `This call${formatAlsoAsked(alsoAsked)}: the card shows all calls. Slack asks about the next call later.`,
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

/** Lists the newest findings as the tools' own sentences, oldest first. */
function listFindings(evidence: readonly Evidence[]): object[] {
  const said = evidence.filter(({ what, isSaid }) => what === 'look' && isSaid)
  return said.slice(-maxFindings).map(({ found }) => section(`Found: ${found}`, maxFoundChars))
}

/**
 * Renders a section. Only the title can begin a line, so that no sentence can look like a section.
 */
function sectionOfCard({ name, title, sentences }: CardSection): object {
  return sectionOfLines(`${title}: ${sentences.map(oneLine).join('\n• ')}`, maxSectionChars[name] ?? maxOtherChars)
}

/** Shows the beginning of the dry run. The page of the approval shows the whole dry run. */
function rehearsed({ dryRun }: Approval): object[] {
  const found = parseRehearsal(dryRun.details)?.lines ?? []
  const lines = found.slice(0, maxRehearsedLines)
  const left = found.length - lines.length
  return lines.length > 0
    ? [sectionOfLines([...lines, ...(left > 0 ? [`and ${left} more lines`] : [])].join('\n'), maxDryRunChars)]
    : []
}

function whoMay({ risk, required }: Approval, { type }: Incident): string {
  const people = required === 1 ? 'one person' : `${required} people`
  const where =
    risk === 'critical' ? '. Decide on the card, signed in; Slack takes no decision about critical risk' : ''
  return `Who may: ${people} who may decide about ${risk} risk and ${type}${where}`
}

function approve(approval: Approval, value: string): object {
  const question: PlainText = plainText(`${approval.tool} on ${targetsOf(approval)}`, slackLimits.confirmText)
  return {
    type: 'button',
    text: plainText('Approve', slackLimits.buttonText),
    action_id: 'approve',
    value,
    // Asks for a confirmation, because a single touch on a phone is not a decision.
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
