import type { ChatMessage } from '../domain/chat.ts'
import { refusedEnvelope } from '../domain/envelope.ts'
import type { BodyRef, IncidentEvent, ProposedCall } from '../domain/event.ts'
import { fence, inertJson, withoutTemplateTokens } from '../domain/inert-text.ts'
import type { Envelope } from '../domain/tool.ts'
import { withoutThoughts } from './json.ts'

/** One thing said, before it is known how much of it fits. */
export type Entry =
  | { kind: 'answer'; content: string; calls: ProposedCall[] }
  | { kind: 'result'; callId: string; envelope: Envelope; body: BodyRef | null }
  | { kind: 'correction'; text: string }

/** A result is never longer than this, however much room there is: one flood must not drown the rest. */
const resultLimitCharacters = 16_000
/** What is left of a result that does not fit any more: its evidence number and whether it worked. */
const stubCharacters = 200

/**
 * Folds an attempt's rows into what was said, oldest first. Every proposed call has exactly one result, as the native protocol
 * demands: what the tool answered, why it was refused or denied, or that it was not run.
 */
export function conversation(events: readonly IncidentEvent[], attempt: number): Entry[] {
  const entries: Entry[] = []
  const results = new Map<string, Extract<Entry, { kind: 'result' }>>()
  const corrections = new Map<string, unknown[]>()
  const settle = (callId: string, envelope: Envelope, body: BodyRef | null = null) => {
    const result = results.get(callId)
    if (!result) return
    result.envelope = envelope
    result.body = body
  }
  for (const event of events) {
    if (event.attempt !== attempt) continue
    switch (event.kind) {
      case 'model_answered': {
        const { content, calls } = event.metadata
        // Rows of earlier versions may hold what the model thought.
        entries.push({ kind: 'answer', content: withoutThoughts(content), calls })
        for (const call of calls) {
          const result = { kind: 'result' as const, callId: call.id, envelope: notRun(call.tool), body: null }
          results.set(call.id, result)
          entries.push(result)
        }
        break
      }
      case 'call_judged':
        if (event.metadata.verdict === 'refuse') settle(event.metadata.callId, refused(event))
        else corrections.set(event.metadata.callId, event.metadata.corrected ?? [])
        break
      case 'tool_finished': {
        const { callId, result, body, tool } = event.metadata
        // The model reads what code put right; else it would take the answer for one to what it had asked.
        const corrected = corrections.get(callId) ?? []
        const meta = { ...result.meta, seq: event.seq, tool, ...(corrected.length > 0 && { corrected }) }
        settle(callId, { ...result, meta }, body)
        break
      }
      case 'verification': {
        const result = results.get(event.metadata.callId)
        const { outcome, postcondition, observed } = event.metadata
        if (result) result.envelope.meta.verification = { outcome, postcondition, observed, seq: event.seq }
        break
      }
      case 'approval_decided':
        if (event.metadata.decision === 'deny') settle(event.metadata.callId, denied(event))
        break
      case 'correction_sent':
        entries.push({ kind: 'correction', text: event.metadata.text })
        break
      default:
        break
    }
  }
  return entries
}

function notRun(tool: string): Envelope {
  return {
    ...refusedEnvelope({ code: 'NOT_RUN', reason: 'this call was not run', hint: null }),
    meta: { tool },
  }
}

function refused(event: IncidentEvent<'call_judged'>): Envelope {
  const { tool } = event.metadata
  return { ...refusedEnvelope(event.metadata), meta: { seq: event.seq, tool } }
}

function denied(event: IncidentEvent<'approval_decided'>): Envelope {
  const reason = event.metadata.reason ?? 'denied without a reason'
  return {
    ...refusedEnvelope({
      code: 'DENIED',
      reason,
      hint: 'Do not propose the same action again: propose one that respects the reason, or escalate quoting it.',
      details: { by: event.actor, category: event.metadata.category ?? 'other' },
    }),
    meta: { seq: event.seq },
  }
}

/**
 * Which stored bodies to load so that everything fits into the budget: the newest results whole, older ones as the head and
 * tail their rows keep. Reading none of the others keeps `think` bounded however long an investigation grows.
 */
export function bodiesThatFit(entries: readonly Entry[], budgetCharacters: number): Set<string> {
  let left = budgetCharacters
  // Older results may shrink to stubs: what was just asked for matters more than what was read ten turns ago.
  for (const entry of entries)
    left -= entry.kind === 'result' ? Math.min(stubCharacters, shortLength(entry)) : shortLength(entry)
  const chosen = new Set<string>()
  for (const entry of entries.toReversed()) {
    if (entry.kind !== 'result') continue
    const whole = entry.body ? Math.min(entry.body.bytes, resultLimitCharacters) + stubCharacters : shortLength(entry)
    left -= Math.max(0, whole - stubCharacters)
    if (left < 0) break
    if (entry.body) chosen.add(entry.body.digest)
  }
  return chosen
}

function shortLength(entry: Entry): number {
  // What the protocol wraps around each call counts too.
  if (entry.kind === 'answer')
    return entry.content.length + JSON.stringify(entry.calls).length + 60 * entry.calls.length
  if (entry.kind === 'correction') return entry.text.length
  return resultText(entry, new Map()).length
}

function resultText(entry: Extract<Entry, { kind: 'result' }>, bodies: ReadonlyMap<string, string>): string {
  if (!entry.body) return inertJson(entry.envelope)
  const whole = bodies.get(entry.body.digest)
  if (whole !== undefined && whole.length <= resultLimitCharacters) {
    return inertJson({ ...entry.envelope, data: JSON.parse(whole) })
  }
  const text = whole ?? ''
  const half = resultLimitCharacters / 2
  const head = whole === undefined ? entry.body.head : text.slice(0, half)
  const tail = whole === undefined ? entry.body.tail : text.slice(-half)
  return inertJson({
    ...entry.envelope,
    data: { truncated: true, bytes: entry.body.bytes, head: head.toWellFormed(), tail: tail.toWellFormed() },
  })
}

/**
 * The messages for the model: the opening ones as given, then the conversation cut to the budget. When even the short forms do
 * not fit, the oldest results shrink to stubs; answers stay, so that the model knows what it did.
 */
export function renderMessages(
  protocol: 'native' | 'json',
  opening: ChatMessage[],
  entries: readonly Entry[],
  bodies: ReadonlyMap<string, string>,
  budgetCharacters: number,
): ChatMessage[] {
  const texts = entries.map((entry) => (entry.kind === 'result' ? resultText(entry, bodies) : ''))
  let total = 0
  for (const [index, entry] of entries.entries()) {
    total += entry.kind === 'result' ? (texts[index] as string).length : shortLength(entry)
  }
  for (const [index, entry] of entries.entries()) {
    if (total <= budgetCharacters) break
    const text = texts[index] as string
    if (entry.kind !== 'result' || text.length <= stubCharacters) continue
    const stub = inertJson({
      ok: entry.envelope.ok,
      omitted: 'an older result, cut to fit',
      meta: { seq: entry.envelope.meta.seq },
    })
    total -= text.length - stub.length
    texts[index] = stub
  }
  const first = firstThatFits(entries, texts, total, budgetCharacters)
  const said = entries.slice(first).map((entry, index) => toMessage(protocol, entry, texts[first + index] as string))
  return first === 0 ? [...opening, ...said] : [...opening, leftOut(entries.slice(0, first)), ...said]
}

/** Where to begin when even stubs are too many: at the answer from which on everything fits. A turn is kept whole or not at all. */
function firstThatFits(entries: readonly Entry[], texts: string[], total: number, budgetCharacters: number): number {
  let first = 0
  let left = total
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'answer') {
      first = index
      if (left <= budgetCharacters) return first
    }
    left -= entry.kind === 'result' ? (texts[index] as string).length : shortLength(entry)
  }
  return first
}

function leftOut(entries: readonly Entry[]): ChatMessage {
  const turns = entries.filter((entry) => entry.kind === 'answer').length
  return {
    role: 'user',
    content: `The first ${turns} turns are left out here. list_incident_events shows what they did.`,
  }
}

function toMessage(protocol: 'native' | 'json', entry: Entry, text: string): ChatMessage {
  if (entry.kind === 'correction') return { role: 'user', content: `CORRECTION: ${withoutTemplateTokens(entry.text)}` }
  if (entry.kind === 'result') {
    if (protocol === 'native') return { role: 'tool', tool_call_id: entry.callId, content: text }
    return { role: 'user', content: fence('tool_result', text) }
  }
  if (protocol === 'native' && entry.calls.length > 0) {
    return {
      role: 'assistant',
      content: entry.content || null,
      tool_calls: entry.calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.tool, arguments: JSON.stringify(call.arguments ?? {}) },
      })),
    }
  }
  const call = entry.calls[0]
  const content =
    entry.content || !call
      ? entry.content
      : JSON.stringify({ tool_call: { name: call.tool, parameters: call.arguments ?? {} } })
  return { role: 'assistant', content: content || '(no answer)' }
}

/**
 * A short piece of a model's own words for a message back to it: one line, at most `maxChars` code points, nothing in it
 * that moves a terminal, hides text or closes the quotes around it.
 */
export function quote(text: string, maxChars = 120): string {
  const start = text.slice(0, maxChars * 8)
  const plain = start
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .replaceAll(/[«»]/g, "'")
    .trim()
  const chars = [...plain]
  const isCut = chars.length > maxChars || start.length < text.length
  return `«${chars.slice(0, maxChars).join('')}${isCut ? '…' : ''}»`
}

const stepLimit = 10
const argumentsLimit = 120

/**
 * The hint for followers: type, title, resolution, and up to ten of the leader's calls with their
 * arguments cut at 120 characters. Null when the leader did not resolve. It is data for its reader.
 */
export function renderLeaderHint(
  leader: { type: string; title: string; attempt: number; resolution: string | null },
  events: readonly IncidentEvent[],
): string | null {
  if (leader.resolution === null) return null
  const own = events.filter((event) => event.attempt === leader.attempt)
  const steps = own.flatMap((event) =>
    event.kind === 'tool_started' ? [`${event.metadata.tool}(${cut(JSON.stringify(event.metadata.arguments))})`] : [],
  )
  const shown = steps.slice(0, stepLimit).map((step, index) => `  ${index + 1}. ${step}`)
  if (steps.length > stepLimit) shown.push(`  … and ${steps.length - stepLimit} more`)
  return [
    `Incident type: ${leader.type}`,
    `Title: ${leader.title}`,
    `Resolution: ${leader.resolution}`,
    '',
    'Investigation steps taken:',
    ...shown,
  ].join('\n')
}

function cut(text: string): string {
  return text.length <= argumentsLimit ? text : `${text.slice(0, argumentsLimit - 1).toWellFormed()}…`
}
