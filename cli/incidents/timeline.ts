import type { EventKind, IncidentEvent, Verdict } from '../../domain/event.ts'
import { formatElapsed } from '../ui/format.ts'
import { getTerminalWidth, paint } from '../ui/terminal.ts'
import { inertJsonText, truncate, wrap } from '../ui/text.ts'
import { describeEvent, formatActor } from './describe-event.ts'

/** Kinds about the incident itself. The rows of an attempt are indented below its turns. */
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

/**
 * The log from top to bottom, each row with its number. Leaves out the start of a read, which its
 * end repeats.
 */
export function formatTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  const shown = events.filter((event) => event.kind !== 'tool_started' || event.metadata.effect === 'write')
  const digits = String(events.at(-1)?.seq ?? 0).length
  const lines = shown.map((event) => {
    const place = `  ${String(event.seq).padStart(digits)}  ${formatElapsed(began, event.at).padStart(8)}  `
    const indent = ' '.repeat(place.length + getDepth(event))
    const room = getTerminalWidth() - indent.length
    const line = process.stdout.isTTY ? truncate(describeRow(event), 4 * room) : describeRow(event)
    const text = wrap(line, room - 2, `${indent}  `)
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

/** Every row in full: kind, actor, and the metadata below it. */
export function formatFullTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  return events
    .map((event) =>
      [
        paint('bold', `${event.seq}  ${formatElapsed(began, event.at)}  ${event.kind}  ${formatActor(event.actor)}`),
        `    ${wrap(describeEvent(event), getTerminalWidth() - 4, '    ')}`,
        inertJsonText(event.metadata, 2).replace(/^/gm, '    '),
      ].join('\n'),
    )
    .join('\n')
}

type Style = Parameters<typeof paint>[0]

/** How far a row is indented: 0 for the incident, 1 for turns, 2 for what a turn does. */
const liveDepths: Partial<Record<IncidentEvent['kind'], number>> = {
  alert_received: 0,
  looked: 0,
  noted: 0,
  claimed: 0,
  context_assembled: 0,
  resolved: 0,
  escalated: 0,
  cancelled: 0,
  notified: 0,
  model_answered: 1,
  model_failed: 1,
  correction_sent: 1,
}

const liveStyles: Partial<Record<IncidentEvent['kind'], Style>> = {
  model_answered: 'cyan',
  approval_requested: ['bold', 'magenta'],
  approval_decided: ['bold', 'magenta'],
  approval_expired: 'red',
  model_failed: 'red',
  security_event: ['bold', 'red'],
  resolved: ['bold', 'green'],
  escalated: ['bold', 'red'],
  cancelled: 'yellow',
}

/** A row of a live view, with the time since `sinceIso`. Null for rows that say nothing new. */
export function formatLiveRow(event: IncidentEvent, sinceIso: string): string | null {
  // The start of a read is not shown, because its end follows. The start of a write is.
  if (event.kind === 'tool_started' && event.metadata.effect !== 'write') return null
  if (event.kind === 'tool_started' && event.metadata.effect === 'write') return formatRow(event, sinceIso, 2, 'bold')
  if (event.kind === 'call_judged') return formatRow(event, sinceIso, 2, verdictStyles[event.metadata.verdict])
  if (event.kind === 'verification') {
    return formatRow(event, sinceIso, 2, outcomeStyles[event.metadata.outcome] ?? 'reset')
  }
  if (event.kind === 'tool_finished')
    return formatRow(event, sinceIso, 3, event.metadata.outcome === 'done' ? 'reset' : 'red')
  return formatRow(event, sinceIso, liveDepths[event.kind] ?? 2, liveStyles[event.kind] ?? 'reset')
}

const verdictStyles: Record<Verdict, Style> = { run: 'dim', ask: ['bold', 'magenta'], refuse: 'red' }
const outcomeStyles: Record<string, Style> = { open: 'dim', held: 'green', not_held: 'red', unproven: 'yellow' }

function formatRow(event: IncidentEvent, sinceIso: string, depth: number, style: Style): string {
  const time = formatElapsed(sinceIso, event.at).padStart(9)
  const indent = '  '.repeat(depth)
  const turn = event.kind === 'model_answered' && event.turn !== null ? `Turn ${event.turn}: ` : ''
  const room = getTerminalWidth() - time.length - 2 - indent.length
  const line = truncate(turn + describeEvent(event), room * 3)
  const text = wrap(line, room - 2, '  ')
    .split('\n')
    .map((each) => paint(style, each))
    .join(`\n${' '.repeat(time.length + 2)}${indent}`)
  return `${paint('dim', time)}  ${indent}${text}`
}
