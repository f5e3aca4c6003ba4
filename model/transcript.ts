import type { ChatMessage } from '../domain/chat.ts'
import { refusedEnvelope } from '../domain/envelope.ts'
import type { BodyRef, IncidentEvent, ProposedCall } from '../domain/event.ts'
import { fence, inertJson, withoutTemplateTokens } from '../domain/inert-text.ts'
import type { Envelope } from '../domain/tool.ts'
import { withoutThoughts } from './json.ts'
import { cutToFit, nameOfCall, noteShown, readBeginning, type Shown, sayShortly, showAnswer } from './shown-result.ts'

/** So many calls of an answer are run, in their order; the others come back as `NOT_RUN`. */
export const callsPerAnswer = 8

/** One thing said, before it is known how much of it fits. */
export type Entry =
  | { kind: 'answer'; content: string; calls: ProposedCall[] }
  /** `call`: what was proposed; absent in scripted worlds. */
  | {
      kind: 'result'
      callId: string
      envelope: Envelope
      body: BodyRef | null
      call?: Pick<ProposedCall, 'tool' | 'arguments'>
    }
  | { kind: 'correction'; text: string }
  /** What the opening messages hold: no message, but later answers repeat none of it. */
  | { kind: 'context'; value: unknown }
type Result = Extract<Entry, { kind: 'result' }>

/** A result is never longer than this, however much room there is: one flood must not drown the rest. */
const resultLimitCharacters = 16_000
/** What is left of a result that does not fit any more: its evidence number, whether it worked, and a few of its words. */
const stubCharacters = 300
const saidCharacters = 140
/** Of calls that are left out a list is kept, at most so long. */
const listCharacters = 4_000

/**
 * Folds an attempt's rows into what was said, oldest first. Every proposed call has exactly one result, as the native protocol
 * demands: what the tool answered, why it was refused or denied, or that it was not run.
 */
export function conversation(events: readonly IncidentEvent[], attempt: number): Entry[] {
  const entries: Entry[] = []
  const results = new Map<string, Result>()
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
        for (const [index, call] of calls.entries()) {
          const envelope = notRun(call.tool, index >= callsPerAnswer)
          const result: Result = { kind: 'result', callId: call.id, envelope, body: null, call }
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
        const at = event.at.slice(11, 19)
        const meta = { ...result.meta, seq: event.seq, tool, at, ...(corrected.length > 0 && { corrected }) }
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

/** The same conversation, whose last message says how the limits stand. Only there: what was sent before stays as it was sent. */
export function withStanding(entries: readonly Entry[], standing: string): Entry[] {
  const last = entries.at(-1)
  if (last?.kind === 'correction') return [...entries.slice(0, -1), { ...last, text: `${last.text} (${standing})` }]
  if (last?.kind !== 'result') return [...entries]
  const envelope = { ...last.envelope, meta: { ...last.envelope.meta, budget: standing } }
  return [...entries.slice(0, -1), { ...last, envelope }]
}

function notRun(tool: string, isOneTooMany: boolean): Envelope {
  const reason = isOneTooMany
    ? `the first ${callsPerAnswer} calls of an answer are run, and this is a later one`
    : 'this call was not run'
  const hint = isOneTooMany ? 'Send it again if it is still needed.' : null
  return { ...refusedEnvelope({ code: 'NOT_RUN', reason, hint }), meta: { tool } }
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
  return entry.kind === 'result' ? resultText(entry, new Map(), new Map()).length : 0
}

/** A result as JSON of one level: what is too long is cut within its data, and `meta` stays whole. */
function resultText(entry: Result, bodies: ReadonlyMap<string, string>, shown: Shown): string {
  const { ok, error, data: inRow, meta } = entry.envelope
  const whole = entry.body ? bodies.get(entry.body.digest) : undefined
  const data = !entry.body ? inRow : whole === undefined ? readBeginning(entry.body.head) : JSON.parse(whole)
  const isCut = entry.body !== null && whole === undefined
  const known = isCut ? new Map() : shown
  const written =
    data === undefined ? undefined : showAnswer(data, entry.call, { where: `seq ${meta.seq}`, shown: known })
  const fitting = written === undefined ? undefined : cutToFit(written, resultLimitCharacters)
  const cut =
    isCut || fitting !== written ? { cut: 'a part of this result is left out: ask for less, or for a part' } : {}
  return inertJson({
    ok,
    ...(error && { error: plainError(error) }),
    ...(fitting !== undefined && { data: fitting }),
    meta: { ...meta, ...cut },
  })
}

/** Of the flags of an error those that are true; the others go without saying. */
function plainError({ code, message, details, ...flags }: NonNullable<Envelope['error']>): Record<string, unknown> {
  const { auto_recoverable: _, status: _status, ...told } = details
  return { code, message, ...Object.fromEntries(Object.entries(flags).filter(([, is]) => is)), details: told }
}

function stubText({ envelope, body }: Result): string {
  const said = sayShortly(envelope.error?.message ?? envelope.data ?? readBeginning(body?.head ?? ''), saidCharacters)
  return inertJson({ ok: envelope.ok, said, omitted: 'an older result, cut to fit', meta: { seq: envelope.meta.seq } })
}

/** The texts of results, those before `kept` as stubs. What a stub hides is written out again where it comes again. */
function textsOf(entries: readonly Entry[], bodies: ReadonlyMap<string, string>, kept: number): string[] {
  const shown: Shown = new Map()
  return entries.map((entry, index) => {
    if (entry.kind === 'context') noteShown(entry.value, { where: 'the context', shown })
    if (entry.kind !== 'result') return ''
    if (index >= kept) return resultText(entry, bodies, shown)
    const whole = resultText(entry, bodies, new Map())
    const stub = stubText(entry)
    return whole.length > stub.length ? stub : whole
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
  const lengthOf = (texts: string[]) =>
    entries.reduce(
      (sum, entry, at) => sum + (entry.kind === 'result' ? (texts[at] as string).length : shortLength(entry)),
      0,
    )
  let kept = 0
  let texts = textsOf(entries, bodies, kept)
  let total = lengthOf(texts)
  while (total > budgetCharacters && kept < entries.length) {
    for (let left = total; kept < entries.length && left > budgetCharacters; kept += 1)
      left -= Math.max(0, (texts[kept] as string).length - stubCharacters)
    texts = textsOf(entries, bodies, kept)
    total = lengthOf(texts)
  }
  const listed = Math.min(listCharacters, budgetCharacters / 4)
  const first = firstThatFits(entries, texts, total, budgetCharacters - listed, budgetCharacters)
  const said = entries.slice(first).flatMap((entry, at) => toMessage(protocol, entry, texts[first + at] as string))
  return [...opening, ...leftOut(entries.slice(0, first), listed), ...said]
}

/** Where to begin when even stubs are too many: at the answer from which on everything fits. A turn is kept whole or not at all. */
function firstThatFits(
  entries: readonly Entry[],
  texts: string[],
  total: number,
  roomWithList: number,
  room: number,
): number {
  if (total <= room) return 0
  let first = 0
  let left = total
  for (const [index, entry] of entries.entries()) {
    if (entry.kind === 'answer') {
      first = index
      if (left <= roomWithList) return first
    }
    left -= entry.kind === 'result' ? (texts[index] as string).length : shortLength(entry)
  }
  return first
}

/** What turns that are left out called, and what each call said in a few words: a loop would begin where nobody remembers. */
function leftOut(entries: readonly Entry[], mostCharacters: number): ChatMessage[] {
  const turns = entries.filter((entry) => entry.kind === 'answer').length
  if (turns === 0) return []
  const lines = entries.flatMap((entry) => {
    if (entry.kind !== 'result') return []
    const { envelope, body, call } = entry
    const said = sayShortly(envelope.error?.message ?? envelope.data ?? readBeginning(body?.head ?? ''), saidCharacters)
    return [
      `seq ${envelope.meta.seq ?? '-'} ${call ? cut(nameOfCall(call)) : ''}: ${envelope.ok ? '' : 'failed, '}${said}`.replace(
        /\s+/g,
        ' ',
      ),
    ]
  })
  const kept: string[] = []
  let room = mostCharacters - 250
  for (const line of lines.toReversed()) {
    room -= line.length + 1
    if (room < 0) break
    kept.unshift(line)
  }
  const before = lines.length - kept.length
  const list = [...(before > 0 ? [`… ${before} calls before these`] : []), ...kept].join('\n')
  const about = `The first ${turns} turns are left out here. These calls were made in them; calling them again says the same unless something changed.`
  return [{ role: 'user', content: `${about}\n${fence('earlier_calls', list)}` }]
}

function toMessage(protocol: 'native' | 'json', entry: Entry, text: string): ChatMessage[] {
  if (entry.kind === 'context') return []
  if (entry.kind === 'correction')
    return [{ role: 'user', content: `CORRECTION: ${withoutTemplateTokens(entry.text)}` }]
  if (entry.kind === 'answer') return [answerMessage(protocol, entry)]
  if (protocol === 'native') return [{ role: 'tool', tool_call_id: entry.callId, content: text }]
  return [{ role: 'user', content: fence('tool_result', text) }]
}

function answerMessage(protocol: 'native' | 'json', entry: Extract<Entry, { kind: 'answer' }>): ChatMessage {
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
