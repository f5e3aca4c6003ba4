import { listLinks } from '../../domain/alert-links.ts'
import { reportText } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatSpan, withSpaces } from '../../domain/format.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { resourceKey } from '../../domain/resource.ts'
import { categoryWords, outcomeWords, remarks } from '../../domain/status-words.ts'
import type { ApiIncident } from '../api.ts'
import { formatMoment, paintState } from '../ui/format.ts'
import { getTerminalWidth, paint } from '../ui/terminal.ts'
import { inert, wrap } from '../ui/text.ts'

/** What an incident is, and its state. */
export function formatIncident(incident: ApiIncident, now = Date.now()): string {
  const line = (name: string, text: string | null) =>
    text === null ? [] : [`  ${paint('dim', name.padEnd(10))} ${wrap(text, getTerminalWidth() - 14, '             ')}`]
  const { createdAt, closedAt, owner } = incident
  const took = formatSpan((closedAt ? Date.parse(closedAt) : now) - Date.parse(createdAt))
  const by = { alert: '', default: ' (no severity in the alert)', person: ' (set by a person)' }[
    incident.severitySource
  ]
  return [
    paint('bold', wrap(inert(incident.title), getTerminalWidth() - 2, '  ')),
    '',
    ...line('incident', inert(incident.id)),
    ...line('severity', paintState(incident.severity) + by),
    ...line('status', describeStanding(incident)),
    ...line('queue', incident.queue ? inert(incident.queue.text) : null),
    ...line('kept', incident.keptReason ? `not investigated: ${inert(incident.keptReason)}` : null),
    ...line('owner', owner ? `${inert(owner.name)}, since ${formatMoment(owner.since)}` : null),
    ...line('watched', incident.watchUntil ? `its alert has until ${formatMoment(incident.watchUntil)} to end` : null),
    ...line('follows', incident.previousId ? inert(incident.previousId) : null),
    ...line('type', incident.type),
    ...line('resource', incident.resource ? inert(resourceKey(incident.resource)) : '(unknown)'),
    ...line('attempt', `${incident.attempt}${incident.role ? `, as ${incident.role}` : ''}`),
    ...line('assigned', incident.assignedTo ? inert(incident.assignedTo) : null),
    ...line('created', formatMoment(createdAt)),
    ...line(closedAt ? 'closed' : 'open for', closedAt ? `${formatMoment(closedAt)}, after ${took}` : took),
    ...line('outcome', describeClosure(incident)),
    ...line('resolution', incident.resolution ? inert(incident.resolution) : null),
  ].join('\n')
}

/** Its alerts with their group at the sender, and where a person reads on. Null where it has none. */
export function formatAlerts(alerts: Surroundings['alerts']): string | null {
  if (alerts.length === 0) return null
  const words = { firing: 'firing', resolved: 'ended', unknown: 'unknown' }
  const lines = alerts.flatMap(({ status, title, source, groupKey, links }) => [
    `  ${words[status].padEnd(10)} ${wrap(inert(`${title} (${source})`), getTerminalWidth() - 14, '             ')}`,
    ...(groupKey ? [`             ${paint('dim', 'group')} ${inert(groupKey)}`] : []),
    ...listLinks(links).map(({ word, href }) => `             ${paint('dim', word.toLowerCase())} ${inert(href)}`),
  ])
  return lines.join('\n')
}

/** How it ended, and by whom. Null while it is open. */
function describeClosure({ outcome, category, closedBy }: ApiIncident): string | null {
  const ending = outcome ? outcomeWords[outcome] : category ? categoryWords[category] : null
  const by = closedBy && { agent: 'by the agent', person: 'by a person', code: 'by Nightshift' }[closedBy]
  return [ending, by].filter(Boolean).join(', ') || null
}

/** The report of the last escalation; null when the rows have none. */
export function formatEscalation(events: readonly IncidentEvent[]): string | null {
  const escalation = events.findLast(({ kind }) => kind === 'escalated')
  const report = escalation?.kind === 'escalated' ? escalation.metadata.report : undefined
  if (!report) return null
  const lines = reportText({ ...report, name: inert(report.name) })
    .split('\n')
    .slice(1)
  return lines
    .map((line) => `  ${wrap(inert(line), getTerminalWidth() - 4, line.startsWith('- ') ? '    ' : '  ')}`)
    .join('\n')
}

/** The outcome of a resolution, the category of an escalation, or `none`. */
export function getEndingCode({
  status,
  outcome,
  category,
}: Pick<ApiIncident, 'status' | 'outcome' | 'category'>): string {
  return (status === 'resolved' ? outcome : status === 'escalated' ? category : null) ?? 'none'
}

/** The status of an incident, and how it was closed. */
export function describeEnding(incident: ApiIncident): string {
  const ending = getEndingCode(incident)
  return ending === 'none' ? paintState(incident.status) : `${paintState(incident.status)}: ${withSpaces(ending)}`
}

/** The status of an incident, with the remarks on it. */
export function describeStanding(incident: ApiIncident): string {
  return [paintState(incident.status), ...remarks(incident).map((each) => inert(each))].join(', ')
}
