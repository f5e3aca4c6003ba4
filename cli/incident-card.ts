import { resourceKey } from '../domain/resource.ts'
import { remarks } from '../domain/status-words.ts'
import type { AnIncident } from './core.ts'
import { inert } from './inert.ts'
import { paint, width } from './terminal.ts'
import { moment, span } from './time.ts'
import { word } from './word.ts'
import { wrap } from './wrap.ts'

function remarksOf(incident: AnIncident): string {
  const said = remarks(incident)
  return said.length === 0 ? '' : `, ${inert(said.join(', '))}`
}

/** What an incident is and where it stands. */
export function incidentCard(incident: AnIncident, now = Date.now()): string {
  const line = (name: string, text: string | null) =>
    text === null ? [] : [`  ${paint('dim', name.padEnd(10))} ${wrap(text, width() - 14, '             ')}`]
  const { createdAt, closedAt } = incident
  const took = span((closedAt ? Date.parse(closedAt) : now) - Date.parse(createdAt))
  const by = { alert: '', default: ' (no severity in the alert)', person: ' (set by a person)' }[
    incident.severitySource
  ]
  return [
    paint('bold', wrap(inert(incident.title), width() - 2, '  ')),
    '',
    ...line('incident', inert(incident.id)),
    ...line('severity', word(incident.severity) + by),
    ...line('status', word(incident.status) + remarksOf(incident)),
    ...line('kept', incident.keptReason ? inert(incident.keptReason) : null),
    ...line('follows', incident.previousId ? inert(incident.previousId) : null),
    ...line('type', incident.type),
    ...line('resource', incident.resource ? inert(resourceKey(incident.resource)) : '(unknown)'),
    ...line('attempt', `${incident.attempt}${incident.role ? `, as ${incident.role}` : ''}`),
    ...line('assigned', incident.assignedTo ? inert(incident.assignedTo) : null),
    ...line('created', moment(createdAt)),
    ...line(closedAt ? 'closed' : 'open for', closedAt ? `${moment(closedAt)}, after ${took}` : took),
    ...line('resolution', incident.resolution ? inert(incident.resolution) : null),
  ].join('\n')
}
