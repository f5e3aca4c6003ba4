import { slackLimits } from '../../clients/slack/text.ts'
import type { Approval } from '../../domain/approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { minuteOf, settledLines } from '../../domain/settled.ts'
import { statusWords } from '../../domain/status-words.ts'
import { actions, context, field, header, linkButton, type SlackMessage, section, slackMessage } from './render.ts'

const maxApprovals = 5
const maxResolutionChars = 2_500
const maxLineChars = 500

/** The first message of an incident's thread: where it stands now, and who decided what. `url` is the incident's page. */
export function renderRoot(incident: Incident, approvals: readonly Approval[], url: string): SlackMessage {
  const heading = `${capital(incident.severity)}: ${incident.title}`
  const resource = incident.resource ? `${incident.resource.kind} ${incident.resource.id}` : 'unknown'
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
    ...(incident.resolution?.trim() ? [section(incident.resolution, maxResolutionChars)] : []),
    ...approvals
      .slice(0, maxApprovals)
      .map((approval) =>
        section(`${approval.tool}: ${settledLines(approval).join('. ') || 'a person is asked'}`, maxLineChars),
      ),
    ...actions(linkButton('Open incident', url)),
    context(`Nightshift, ${incident.id}, since ${minuteOf(incident.createdAt)}`),
  ])
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}
