import type { EventKind, IncidentEvent, Verdict } from '../../domain/event.ts'
import { capitalize, formatElapsed, truncate } from '../../domain/format.ts'
import { formatVerification } from '../../domain/format-approval.ts'
import { listReadings } from '../../domain/message.ts'
import { outcomeWords, verdictWords } from '../../domain/status-words.ts'
import { getTerminalWidth, inert, inertJsonText, paint, wrap } from '../ui/terminal.ts'

/** Kinds of rows about the incident itself. The rows of an attempt are indented below its turns. */
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
 * Formats the log from top to bottom, each row with its number. Leaves out the row for the start of
 * a read, because the row for the end of the read repeats it.
 */
export function formatTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  const shown = events.filter((event) => event.kind !== 'tool_started' || event.metadata.effect === 'write')
  const readings = listReadings(events)
  const digits = String(events.at(-1)?.seq ?? 0).length
  const lines = shown.map((event) => {
    const place = `  ${String(event.seq).padStart(digits)}  ${formatSince(began, event).padStart(8)}  `
    const indent = ' '.repeat(place.length + getDepth(event))
    const room = getTerminalWidth() - indent.length
    const read = readings.get(event.seq)
    const whole = `${describeRow(event)}${read ? ` (${read})` : ''}`
    const line = process.stdout.isTTY ? truncate(whole, 4 * room) : whole
    const text = wrap(line, room - 2, `${indent}  `)
    return `${paint('dim', place)}${' '.repeat(getDepth(event))}${text}`
  })
  return [
    ...lines,
    paint('dim', `\n  ${shown.length} of ${events.length} rows; --full shows all, with their data.`),
  ].join('\n')
}

function formatSince(sinceIso: string, { at }: IncidentEvent): string {
  return formatElapsed(Date.parse(at) - Date.parse(sinceIso))
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

/** Formats every row completely: kind, actor, and the metadata below it. */
export function formatFullTimeline(events: IncidentEvent[]): string {
  const began = events[0]?.at ?? ''
  return events
    .map((event) =>
      [
        paint('bold', `${event.seq}  ${formatSince(began, event)}  ${event.kind}  ${formatActor(event.actor)}`),
        `    ${wrap(describeEvent(event), getTerminalWidth() - 4, '    ')}`,
        inertJsonText(event.metadata, 2).replace(/^/gm, '    '),
      ].join('\n'),
    )
    .join('\n')
}

type Style = Parameters<typeof paint>[0]

/** How far a row is indented: 0 for the incident, 1 for turns, 2 for the actions of a turn. */
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

/** Formats a row of a live view, with the time since `sinceIso`. Null for the start of a read. */
export function formatLiveRow(event: IncidentEvent, sinceIso: string): string | null {
  // Leaves out the start of a read, because the row for the end of the read repeats it.
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
  const time = formatSince(sinceIso, event).padStart(9)
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

/** Describes the event in one line without control characters, in full length. */
export function describeEvent(event: IncidentEvent): string {
  return inert(describeByKind(event)).replace(/ {2,}/g, ' ').trim()
}

/** Formats the actor for a column: `agent`, `nightshift`, or the name of a person or source. */
export function formatActor(actor: string): string {
  const name = actor.replace(/^(user|operator|source|system):/, '').replace(/^agent:.*/, 'agent')
  return inert(name)
}

function describeByKind(event: IncidentEvent): string {
  switch (event.kind) {
    case 'claimed':
      // Shows the text of a person's direct write, which is not an investigation.
      if (event.actor.startsWith('user:')) return event.detail
      return `Investigation started as ${event.metadata.role}, attempt ${event.attempt}`
    case 'context_assembled': {
      const { model, maxTurns, parts, runbook } = event.metadata
      const failed = Object.entries(parts).filter(([, state]) => state === 'failed')
      const given = runbook ? `, runbook ${runbook.name} (${runbook.origin}, ${runbook.digest.slice(0, 12)})` : ''
      return `Model ${formatModelName(model)}, ${maxTurns} turns at most${given}${failed.length > 0 ? `; without ${failed.map(([part]) => part).join(', ')}` : ''}`
    }
    case 'model_answered': {
      const { content, calls, final } = event.metadata
      const text = takeFirstSentence(final?.text ?? content)
      const proposes = calls.length > 0 ? `proposes ${calls.map(({ tool }) => tool).join(', ')}` : ''
      return [text, proposes].filter(Boolean).join(' → ') || event.detail
    }
    case 'call_judged':
      return `${capitalize(verdictWords[event.metadata.verdict])}: ${formatCall(event.metadata)} (${event.metadata.code}) ${event.metadata.reason}`
    case 'tool_started':
      return `${formatCall(event.metadata)} starts`
    case 'tool_finished': {
      const { outcome, result, durationMs, said } = event.metadata
      if (said) return `${said} (${durationMs} ms)`
      const answer = result.ok ? summarizeResult(result.data) : (result.error?.message ?? '')
      return `${formatCall(event.metadata)} ${outcome}${answer ? `: ${answer}` : ''} (${durationMs} ms)`
    }
    case 'step_started': {
      const { step, action, vm, to } = event.metadata
      return `Step ${step}: ${action} ${vm} on ${to}`
    }
    case 'step_finished':
      return `Step ${event.metadata.step} ${event.metadata.status}: ${event.metadata.detail}`
    case 'verification': {
      const { outcome, postcondition, observed } = event.metadata
      return outcome === 'open' ? `To verify: ${postcondition}` : `${formatVerification(outcome)}: ${observed}`
    }
    case 'resolved':
      return `Resolved (${outcomeWords[event.metadata.outcome] ?? event.metadata.outcome}): ${event.metadata.resolution}`
    case 'escalated':
      return `Escalated to a person (${event.metadata.code}): ${event.metadata.reason}`
    case 'cancelled':
      return `Cancelled: ${event.metadata.reason}`
    default:
      return event.detail
  }
}

/** Formats the name of a model. Marks the embedded rule table, which is not a language model. */
export function formatModelName(name: string): string {
  return /^runbook(-rules)?\b/.test(name) ? 'runbook-rules, a rule table, not a language model' : name
}

/** Formats a call: the tool, up to three short arguments, then the entries of its lists. */
function formatCall({ tool, arguments: given }: { tool: string; arguments: Record<string, unknown> | null }): string {
  const named = Object.entries(given ?? {})
    .filter(([key, value]) => key !== 'reason' && ['string', 'number', 'boolean'].includes(typeof value))
    .map(([, value]) => String(value))
    .filter((text) => text.length <= 40)
  const words = Object.values(given ?? {})
    .filter((value) => Array.isArray(value))
    .flat()
    .filter((value) => typeof value === 'string')
    .join(' ')
  const call = [tool, ...named.slice(0, 3)].join(' ')
  if (words === '') return call
  return `${call}${named.length > 0 ? ':' : ''} ${truncate(words, maxListLength)}`
}

const maxListLength = 71

/** Summarizes a result by the fields that the results of all tools share. */
function summarizeResult(data: unknown): string {
  if (data === null || typeof data !== 'object') return ''
  const { items, status, health, state, reason, steps, proposal_id, detail, title } = data as Record<string, unknown>
  if (Array.isArray(items)) {
    const ill = items.filter((item) => typeof item?.status === 'string' && !healthyStates.has(item.status))
    if (ill.length === 0) return `${items.length} found`
    const first = ill.map(
      (item) => `${item.id ?? item.name} is ${item.status}${item.reason ? ` (${item.reason})` : ''}`,
    )
    return `${items.length} found, ${first.slice(0, 3).join('; ')}`
  }
  const facts = [status, health, state].filter((each) => typeof each === 'string')
  const more = [reason, detail, facts.length === 0 ? title : null].filter((each) => typeof each === 'string')
  const planned = Array.isArray(steps) && more.length === 0 ? [`${steps.length} steps`] : []
  const named = typeof proposal_id === 'string' ? [proposal_id] : []
  const found = [...facts, ...more, ...planned, ...named]
  return (found.length > 0 ? found : listPlainFacts(data)).join(', ')
}

/** Returns the first three short values of a result that lacks the usual fields. */
function listPlainFacts(data: object): string[] {
  return Object.entries(data)
    .filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
    .filter(([, value]) => String(value).length <= 60 && !/^$|\n/.test(String(value).trim()))
    .slice(0, 3)
    .map(([key, value]) => `${key} ${value}`)
}

const healthyStates = new Set(['nominal', 'live', 'running', 'up', 'resolved'])

function takeFirstSentence(text: string): string {
  return /^.*?[.!?](?=\s|$)/s.exec(text.trim())?.[0] ?? text.trim()
}
