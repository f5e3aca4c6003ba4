import type { Approval } from '../domain/approval.ts'
import { type EscalationReport, reportText } from '../domain/escalation.ts'
import { capitalize, formatMinute } from '../domain/format.ts'
import { listDecisions } from '../domain/format-approval.ts'
import { type Incident, type IncidentStatus, incidentActions } from '../domain/incident.ts'
import { statusWords } from '../domain/status-words.ts'
import type { IncidentPress } from './interaction.ts'
import {
  actions,
  context,
  field,
  header,
  linkButton,
  type SlackMessage,
  section,
  slackMessage,
} from './notification.ts'
import { plainText, slackLimits } from './text.ts'

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
  buttons: Record<IncidentPress, string>
}

/** The first message of an incident's thread: where it stands now, what was found, who has it, and who decided what. */
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
    ...(said.trim() ? [section(said, maxResolutionChars)] : []),
    ...approvals
      .slice(0, maxApprovals)
      .map((approval) =>
        section(`${approval.tool}: ${listDecisions(approval).join('. ') || 'approval requested'}`, maxLineChars),
      ),
    ...actions([...ownerButtons(incident, buttons), ...linkButton('Open incident', url)]),
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

/** Take while it can be taken, Give back while somebody has it. */
function ownerButtons({ status, owner }: Incident, values: Record<IncidentPress, string>): object[] {
  const button = (action: IncidentPress, word: string) => ({
    type: 'button',
    action_id: action,
    value: values[action],
    text: plainText(word, slackLimits.buttonText),
  })
  if (owner) return [button('give_back', 'Give back')]
  return (incidentActions.take as IncidentStatus[]).includes(status) ? [button('take', 'Take')] : []
}
