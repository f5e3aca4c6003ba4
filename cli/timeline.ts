import type { EventKind, IncidentEvent } from '../domain/event.ts'
import { inertJsonText } from './inert.ts'
import { describeEvent, formatActor } from './sentence.ts'
import { paint, terminalWidth } from './terminal.ts'
import { formatElapsed } from './time.ts'
import { wrap } from './wrap.ts'

/** Kinds that tell of the incident itself; what an attempt does is set in below its turns. */
const incidentKinds = new Set<string>([
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
export function formatTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  const shown = events.filter((event) => event.kind !== 'tool_started' || event.metadata.effect === 'write')
  const digits = String(events.at(-1)?.seq ?? 0).length
  const lines = shown.map((event) => {
    const place = `  ${String(event.seq).padStart(digits)}  ${formatElapsed(began, event.at).padStart(8)}  `
    const indent = ' '.repeat(place.length + getDepth(event))
    const room = terminalWidth() - indent.length
    const told = process.stdout.isTTY ? truncate(describeRow(event), 4 * room) : describeRow(event)
    const text = wrap(told, room - 2, `${indent}  `)
    return `${paint('dim', place)}${' '.repeat(getDepth(event))}${text}`
  })
  return [
    ...lines,
    paint('dim', `\n  ${shown.length} of ${events.length} rows; --full shows all, with their data.`),
  ].join('\n')
}

function getDepth({ kind }: IncidentEvent): number {
  if (incidentKinds.has(kind)) return 0
  return kind === 'model_answered' || kind === 'model_failed' ? 2 : 4
}

function describeRow(event: IncidentEvent): string {
  const text = describeEvent(event)
  if (event.kind === 'model_answered' && event.turn !== null) return `Turn ${event.turn}: ${text}`
  const person = event.actor.startsWith('user:') ? formatActor(event.actor) : ''
  return person && !text.includes(person) ? `${person}: ${text}` : text
}

function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).trimEnd()}…`
}

/** Every row with nothing cut, its kind and actor, and its metadata below it. */
export function formatFullTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  return events
    .map((event) =>
      [
        paint('bold', `${event.seq}  ${formatElapsed(began, event.at)}  ${event.kind}  ${formatActor(event.actor)}`),
        `    ${wrap(describeEvent(event), terminalWidth() - 4, '    ')}`,
        inertJsonText(event.metadata, 2).replace(/^/gm, '    '),
      ].join('\n'),
    )
    .join('\n')
}
