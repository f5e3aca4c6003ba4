import type { EventKind, IncidentEvent } from '../domain/event.ts'
import { inertJsonText } from './inert.ts'
import { actorName, sentence } from './sentence.ts'
import { paint, width } from './terminal.ts'
import { elapsed } from './time.ts'
import { wrap } from './wrap.ts'

/** Kinds that tell of the incident itself; what an attempt does is set in below its turns. */
const ofTheIncident = new Set<string>([
  'alert_received',
  'looked',
  'noted',
  'claimed',
  'context_assembled',
  'resolved',
  'escalated',
  'cancelled',
  'notified',
] satisfies EventKind[])

/** The log to be read from top to bottom, each row by its number. That a look begins is left out: its end says more. */
export function timeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  const shown = events.filter((event) => event.kind !== 'tool_started' || event.metadata.effect === 'write')
  const digits = String(events.at(-1)?.seq ?? 0).length
  const lines = shown.map((event) => {
    const place = `  ${String(event.seq).padStart(digits)}  ${elapsed(began, event.at).padStart(8)}  `
    const indent = ' '.repeat(place.length + depthOf(event))
    const room = width() - indent.length
    const told = process.stdout.isTTY ? cut(said(event), 4 * room) : said(event)
    const text = wrap(told, room - 2, `${indent}  `)
    return `${paint('dim', place)}${' '.repeat(depthOf(event))}${text}`
  })
  return [
    ...lines,
    paint('dim', `\n  ${shown.length} of ${events.length} rows; --full shows all, with their data.`),
  ].join('\n')
}

function depthOf({ kind }: IncidentEvent): number {
  if (ofTheIncident.has(kind)) return 0
  return kind === 'model_answered' || kind === 'model_failed' ? 2 : 4
}

function said(event: IncidentEvent): string {
  const text = sentence(event)
  if (event.kind === 'model_answered' && event.turn !== null) return `Turn ${event.turn}: ${text}`
  const person = event.actor.startsWith('user:') ? actorName(event.actor) : ''
  return person && !text.includes(person) ? `${person}: ${text}` : text
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).trimEnd()}…`
}

/** Every row with nothing cut, its kind and actor, and its metadata below it. */
export function fullTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  return events
    .map((event) =>
      [
        paint('bold', `${event.seq}  ${elapsed(began, event.at)}  ${event.kind}  ${actorName(event.actor)}`),
        `    ${wrap(sentence(event), width() - 4, '    ')}`,
        inertJsonText(event.metadata, 2).replace(/^/gm, '    '),
      ].join('\n'),
    )
    .join('\n')
}
