import type { IncidentEvent } from '../domain/event.ts'
import { allowances, refusalOf, refusals } from '../domain/refusal.ts'

/** Counters of seed 001, section 9. Names as they stand on `/metrics`, without the product's prefix. */
export const safetyCounters = {
  fsm_tool_block: 'Calls stopped because a write was not verified or nothing was looked at yet.',
  fsm_final_block: 'Resolutions stopped by an open verification or for want of evidence.',
  strict_resolution_block: 'Calls that named what was not looked up, or what means several things.',
  routing_mismatch_block: 'Calls addressed to a host where a guest on it was meant.',
  phantom_detected: 'Claims of what no row shows.',
  auto_recovery_attempt: 'Refusals and corrections that an investigation can get past by itself.',
  auto_recovery_success: 'Those it did get past.',
  agentic_iterations: 'Turns of the model.',
  judgements: 'Calls judged, by verdict and code.',
  security_events: 'Forgeries and fenced runs.',
} as const
export type SafetyCounter = keyof typeof safetyCounters

/** The labels of each counter. Values come from closed sets only: words of this code, never of a model or an alert. */
export const safetyLabels: Record<SafetyCounter, readonly string[]> = {
  fsm_tool_block: ['phase', 'tool'],
  fsm_final_block: ['phase', 'code'],
  strict_resolution_block: ['tool', 'code'],
  routing_mismatch_block: ['tool'],
  phantom_detected: ['where'],
  auto_recovery_attempt: ['code', 'tool'],
  auto_recovery_success: ['code', 'tool'],
  agentic_iterations: ['protocol'],
  judgements: ['verdict', 'code'],
  security_events: ['code'],
}

type Increment = { counter: SafetyCounter; labels: Record<string, string> }

/** What is pending recovery: by incident, attempt and tool. Folding goes on where it stopped. */
export type Recovering = Map<string, string>

const phases = new Set(['RESOLVING', 'READING', 'VERIFYING'])
const verdicts = new Set(['run', 'ask', 'refuse'])
const securityCodes = new Set([
  'FORGED_RUN',
  'UNKNOWN_TOKEN',
  'SPENT_TOKEN',
  'FOREIGN_TOKEN',
  'LATE_TOKEN',
  'ROLE_LOST',
  'OWN_RUN',
  'STALE_RUN',
  'UNJUDGED',
])

/** What one row adds to the counters. `tools` are the names that there are; any other is `unknown`. */
export function tally(event: IncidentEvent, recovering: Recovering, tools: ReadonlySet<string>): Increment[] {
  switch (event.kind) {
    case 'model_answered': {
      const protocol = event.metadata.finishReason.startsWith('json:') ? 'json' : 'native'
      return [{ counter: 'agentic_iterations', labels: { protocol } }]
    }
    case 'correction_sent':
      if (event.metadata.code !== 'phantom_claim') return []
      return [{ counter: 'phantom_detected', labels: { where: 'prose' } }]
    case 'security_event':
      return [{ counter: 'security_events', labels: { code: oneOf(securityCodes, event.metadata.code) } }]
    case 'call_judged':
      return judged(event, recovering, tools)
    case 'tool_finished':
      return finished(event, recovering, tools)
    case 'resolved':
    case 'escalated':
    case 'cancelled':
      forget(recovering, event.incidentId)
      return []
    default:
      return []
  }
}

function judged(event: IncidentEvent<'call_judged'>, recovering: Recovering, tools: ReadonlySet<string>): Increment[] {
  const { verdict, code, phase, effect, corrected = [] } = event.metadata
  const tool = oneOf(tools, event.metadata.tool)
  const word = verdict === 'refuse' ? codeOf(code) : allowOf(code)
  const added: Increment[] = [{ counter: 'judgements', labels: { verdict: oneOf(verdicts, verdict), code: word } }]
  for (const each of corrected) {
    const labels = { code: codeOf(each.code), tool }
    if (each.code === 'ROUTING_MISMATCH') added.push({ counter: 'routing_mismatch_block', labels: { tool } })
    added.push({ counter: 'auto_recovery_attempt', labels })
    recovering.set(keyOf(event, each.code), each.code)
  }
  if (verdict !== 'refuse') return added
  const at = oneOf(phases, phase ?? '')
  const { class: errorClass, recoverable } = refusalOf(code)
  if (errorClass === 'FSM_BLOCKED' && effect !== 'terminal')
    added.push({ counter: 'fsm_tool_block', labels: { phase: at, tool } })
  if (effect === 'terminal') added.push({ counter: 'fsm_final_block', labels: { phase: at, code: word } })
  if (errorClass === 'STRICT_RESOLUTION')
    added.push({ counter: 'strict_resolution_block', labels: { tool, code: word } })
  if (code === 'ROUTING_MISMATCH') added.push({ counter: 'routing_mismatch_block', labels: { tool } })
  if (code === 'PHANTOM_CLAIM' || code === 'CLAIM_NOT_SHOWN')
    added.push({ counter: 'phantom_detected', labels: { where: 'claim' } })
  if (recoverable) {
    added.push({ counter: 'auto_recovery_attempt', labels: { code: word, tool } })
    recovering.set(keyOf(event, code), code)
  }
  return added
}

function finished(
  event: IncidentEvent<'tool_finished'>,
  recovering: Recovering,
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

function forget(recovering: Recovering, incidentId: string): void {
  for (const key of recovering.keys()) if (key.startsWith(`${incidentId} `)) recovering.delete(key)
}

const allowCodes: ReadonlySet<string> = new Set(allowances)
const allowOf = (code: string) => oneOf(allowCodes, code)
const codeOf = (code: string) => (Object.hasOwn(refusals, code) ? code : 'other')

function oneOf(closed: ReadonlySet<string>, word: string): string {
  return closed.has(word) ? word : 'unknown'
}
