import type { IncidentEvent } from '../../domain/event.ts'
import { outcomeWords } from '../../domain/status-words.ts'
import { tellOutcome } from '../../domain/told-verification.ts'
import { inert } from '../ui/text.ts'

/** What happened, in one line without control characters. The caller truncates it. */
export function describeEvent(event: IncidentEvent): string {
  return inert(describeByKind(event)).replace(/ {2,}/g, ' ').trim()
}

/** The actor, short enough for a column: `agent`, `nightshift`, or a person's name. */
export function formatActor(actor: string): string {
  const name = actor.replace(/^(user|operator|source|system):/, '').replace(/^agent:.*/, 'agent')
  return inert(name)
}

function describeByKind(event: IncidentEvent): string {
  switch (event.kind) {
    case 'claimed':
      return `Claimed for investigation as ${event.metadata.role}, attempt ${event.attempt}`
    case 'context_assembled': {
      const { model, maxTurns, parts } = event.metadata
      const failed = Object.entries(parts).filter(([, state]) => state === 'failed')
      return `Model ${formatModelName(model)}, ${maxTurns} turns at most${failed.length > 0 ? `; without ${failed.map(([part]) => part).join(', ')}` : ''}`
    }
    case 'model_answered': {
      const { content, calls, final } = event.metadata
      const text = takeFirstSentence(final?.text ?? content)
      const proposes = calls.length > 0 ? `proposes ${calls.map(({ tool }) => tool).join(', ')}` : ''
      return [text, proposes].filter(Boolean).join(' → ') || event.detail
    }
    case 'call_judged':
      return `${event.metadata.verdict}: ${formatCall(event.metadata)} (${event.metadata.code}) ${event.metadata.reason}`
    case 'tool_started':
      return `${formatCall(event.metadata)} starts`
    case 'tool_finished': {
      const { outcome, result, durationMs } = event.metadata
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
      return outcome === 'open' ? `To verify: ${postcondition}` : `${tellOutcome(outcome)}: ${observed}`
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

/** The name of a model. Says of the embedded rule table that it is not a language model. */
export function formatModelName(name: string): string {
  return /^runbook(-rules)?\b/.test(name) ? 'runbook-rules, a rule table, not a language model' : name
}

/** A call in short: the tool, up to three short arguments, then the words of its lists. */
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
  return `${call}${named.length > 0 ? ':' : ''} ${words.length > maxListLength ? `${words.slice(0, maxListLength)}…` : words}`
}

const maxListLength = 70

/** The main facts of an answer, from the fields that the answers of all tools share. */
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

/** The first three short values of an answer without the usual fields. */
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
