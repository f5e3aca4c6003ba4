import type { IncidentEvent, Verdict } from '../../domain/event.ts'
import { describeEvent } from '../sentence.ts'
import { paint, terminalWidth } from '../terminal.ts'
import { formatElapsed } from '../time.ts'
import { wrap } from '../wrap.ts'

type Style = Parameters<typeof paint>[0]

/** How far a row is set in: the incident, its turns, what a turn does. */
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

/** A row for whoever watches live, with the time since `sinceIso`; null for one that says nothing new to a person. */
export function formatLiveRow(event: IncidentEvent, sinceIso: string): string | null {
  // That a look begins is told when it has ended; that the world is changed is told before.
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
  const room = terminalWidth() - time.length - 2 - indent.length
  const said = truncate(turn + describeEvent(event), room * 3)
  const text = wrap(said, room - 2, '  ')
    .split('\n')
    .map((each) => paint(style, each))
    .join(`\n${' '.repeat(time.length + 2)}${indent}`)
  return `${paint('dim', time)}  ${indent}${text}`
}

function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).trimEnd()}…`
}
