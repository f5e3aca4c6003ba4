import type { IncidentEvent } from '../domain/event.ts'
import { allowances, refusalOf, refusals } from '../domain/refusal.ts'
import { resourceKind } from '../domain/registry.ts'

/** Names of the counters on `/metrics`, without the product's prefix. */
export const safetyCounters = {
  fsm_tool_block: 'Calls refused because a write was not verified or nothing was read yet.',
  fsm_final_block: 'Resolutions refused because of an open verification or missing evidence.',
  strict_resolution_block: 'Calls with a name that was not looked up or is ambiguous.',
  routing_mismatch_block: 'Calls that named a host but meant a guest on that host.',
  phantom_detected: 'Claims without evidence in the log.',
  auto_recovery_attempt: 'Refusals and corrections that the agent can resolve by itself.',
  auto_recovery_success: 'Refusals and corrections that the agent resolved.',
  agentic_iterations: 'Turns of the model.',
  judgements: 'Judged calls, by verdict and code.',
  security_events: 'Security events, such as forged requests and superseded runs, by code.',
  approval_decisions: 'Recorded decisions about approvals, by channel.',
} as const
export type SafetyCounter = keyof typeof safetyCounters

/**
 * The labels of each counter. Values come from fixed sets, except `model`, which is the server's
 * name for it, and `provider`, which is from the settings. Both values are shortened here and
 * limited to fifty values where they are stored.
 */
export const safetyLabels: Record<SafetyCounter, readonly string[]> = {
  fsm_tool_block: ['phase', 'tool'],
  fsm_final_block: ['phase', 'code'],
  strict_resolution_block: ['tool', 'code'],
  routing_mismatch_block: ['tool', 'target_kind', 'child_kind'],
  phantom_detected: ['provider', 'model', 'where'],
  auto_recovery_attempt: ['code', 'tool'],
  auto_recovery_success: ['code', 'tool'],
  agentic_iterations: ['provider', 'model', 'protocol'],
  judgements: ['verdict', 'code'],
  security_events: ['code'],
  approval_decisions: ['decision', 'via'],
}

type Increment = { counter: SafetyCounter; labels: Record<string, string> }

/** State about open incidents that is kept between folds. */
export type MetricsMemory = {
  /** Recoveries that are pending, by incident, attempt and tool. */
  recovering: Map<string, string>
  /** The model of the last answer, by incident. */
  models: Map<string, string>
}

export const emptyMemory = (): MetricsMemory => ({ recovering: new Map(), models: new Map() })

/**
 * Most entries that are kept: far more than open incidents. Entries of runs that never end are
 * dropped.
 */
const remembered = 2_000

/** Names for the labels of a counter: the known tools, and the provider of the model. */
type MetricWords = { tools: ReadonlySet<string>; provider: string }

const phases = new Set(['RESOLVING', 'READING', 'VERIFYING'])
const kinds: ReadonlySet<string> = new Set(resourceKind.options)
const decisions = new Set(['approve', 'deny'])
/** Ways in which a person's decision arrives, as labels of a counter. */
const doors = new Set(['api', 'cli', 'page', 'slack', 'signal', 'update', 'temporal', 'edit'])
const verdicts = new Set(['run', 'ask', 'refuse'])
const securityCodes = new Set([
  'FORGED_RUN',
  'UNKNOWN_TOKEN',
  'BARE_APPROVAL',
  'SPENT_TOKEN',
  'FOREIGN_TOKEN',
  'LATE_TOKEN',
  'OTHER_VERDICT',
  'TOKEN_EXPOSED',
  'FORGED_CANCEL',
  'ROLE_LOST',
  'OWN_RUN',
  'STALE_RUN',
  'UNJUDGED',
  'FORGED_REQUEST',
  'STALE_REQUEST',
  'REPLAYED_REQUEST',
])

/** Counts one row. A name that no tool has is counted as `unknown`. */
export function countSafetyEvents(event: IncidentEvent, memory: MetricsMemory, words: MetricWords): Increment[] {
  switch (event.kind) {
    case 'model_answered': {
      const protocol = event.metadata.finishReason.startsWith('json:') ? 'json' : 'native'
      const model = toMetricLabel(event.metadata.model)
      remember(memory.models, event.incidentId, model)
      return [{ counter: 'agentic_iterations', labels: { provider: words.provider, model, protocol } }]
    }
    case 'correction_sent':
      if (event.metadata.code !== 'phantom_claim') return []
      return [phantom(event, memory, words, 'prose')]
    case 'approval_decided': {
      const { decision, via, joined } = event.metadata
      // Counts nothing, because the vote is in the log of the incident that requested the approval.
      if (joined) return []
      const labels = { decision: oneOf(decisions, decision), via: oneOf(doors, via) }
      return [{ counter: 'approval_decisions', labels }]
    }
    case 'security_event':
      return [{ counter: 'security_events', labels: { code: oneOf(securityCodes, event.metadata.code) } }]
    case 'call_judged':
      return judged(event, memory, words)
    case 'tool_finished':
      return finished(event, memory.recovering, words.tools)
    case 'resolved':
    case 'escalated':
    case 'cancelled':
      forget(memory, event.incidentId)
      return []
    default:
      return []
  }
}

function judged(event: IncidentEvent<'call_judged'>, memory: MetricsMemory, words: MetricWords): Increment[] {
  const { recovering } = memory
  const { verdict, code, phase, effect, corrected = [] } = event.metadata
  const tool = oneOf(words.tools, event.metadata.tool)
  const word = verdict === 'refuse' ? codeOf(code) : allowOf(code)
  const added: Increment[] = [{ counter: 'judgements', labels: { verdict: oneOf(verdicts, verdict), code: word } }]
  for (const each of corrected) {
    const labels = { code: codeOf(each.code), tool }
    if (each.code === 'ROUTING_MISMATCH') added.push(misrouted(event, tool, each))
    added.push({ counter: 'auto_recovery_attempt', labels })
    remember(recovering, keyOf(event, each.code), each.code)
  }
  if (verdict !== 'refuse') return added
  const at = oneOf(phases, phase ?? '')
  const { class: errorClass, recoverable } = refusalOf(code)
  if (errorClass === 'FSM_BLOCKED' && effect !== 'terminal')
    added.push({ counter: 'fsm_tool_block', labels: { phase: at, tool } })
  if (effect === 'terminal') added.push({ counter: 'fsm_final_block', labels: { phase: at, code: word } })
  if (errorClass === 'STRICT_RESOLUTION')
    added.push({ counter: 'strict_resolution_block', labels: { tool, code: word } })
  if (code === 'ROUTING_MISMATCH') added.push(misrouted(event, tool, event.metadata.details ?? {}))
  if (code === 'PHANTOM_CLAIM' || code === 'CLAIM_NOT_SHOWN') added.push(phantom(event, memory, words, 'claim'))
  if (recoverable) {
    added.push({ counter: 'auto_recovery_attempt', labels: { code: word, tool } })
    remember(recovering, keyOf(event, code), code)
  }
  return added
}

function phantom(
  event: IncidentEvent,
  { models }: MetricsMemory,
  { provider }: MetricWords,
  where: 'claim' | 'prose',
): Increment {
  return { counter: 'phantom_detected', labels: { provider, model: models.get(event.incidentId) ?? 'unknown', where } }
}

/**
 * Returns labels with the kind of resource that the call addressed and the kind that it meant. The
 * targets of a refused call contain the host; those of a corrected call contain what was meant.
 */
function misrouted(event: IncidentEvent<'call_judged'>, tool: string, more: Record<string, unknown>): Increment {
  const kindOf = (id: unknown) => event.metadata.targets?.find((target) => target.id === id)?.kind
  const meant = typeof more.target === 'string' ? more.target.split(':')[0] : kindOf(more.to)
  const labels = { tool, target_kind: kindOf(more.host) ?? 'host', child_kind: oneOf(kinds, meant ?? '') }
  return { counter: 'routing_mismatch_block', labels }
}

function remember(map: Map<string, string>, key: string, value: string): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > remembered && oldest !== undefined) map.delete(oldest)
}

/** Makes a label of an untrusted text: short, with plain characters only. */
export function toMetricLabel(text: string): string {
  return text.replace(/[^A-Za-z0-9_.:/@-]+/g, '_').slice(0, 64) || 'unknown'
}

function finished(
  event: IncidentEvent<'tool_finished'>,
  recovering: MetricsMemory['recovering'],
  tools: ReadonlySet<string>,
): Increment[] {
  if (!event.metadata.result.ok) return []
  const prefix = keyOf(event, '')
  const added: Increment[] = []
  for (const [key, code] of recovering) {
    if (!key.startsWith(prefix)) continue
    recovering.delete(key)
    const labels = { code: codeOf(code), tool: oneOf(tools, event.metadata.tool) }
    added.push({ counter: 'auto_recovery_success', labels })
  }
  return added
}

function keyOf(event: IncidentEvent<'call_judged'> | IncidentEvent<'tool_finished'>, code: string): string {
  return `${event.incidentId} ${event.attempt} ${event.metadata.tool} ${code}`
}

function forget({ recovering, models }: MetricsMemory, incidentId: string): void {
  models.delete(incidentId)
  for (const key of recovering.keys()) if (key.startsWith(`${incidentId} `)) recovering.delete(key)
}

const allowCodes: ReadonlySet<string> = new Set(allowances)
const allowOf = (code: string) => oneOf(allowCodes, code)
const codeOf = (code: string) => (Object.hasOwn(refusals, code) ? code : 'other')

function oneOf(closed: ReadonlySet<string>, word: string): string {
  return closed.has(word) ? word : 'unknown'
}
