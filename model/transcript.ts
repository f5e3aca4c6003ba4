import { readObserved, refusedEnvelope } from '../domain/envelope.ts'
import type { BodyRef, IncidentEvent, ProposedCall } from '../domain/event.ts'
import { addHypothesis, formatHypothesis, type Hypothesis } from '../domain/hypothesis.ts'
import { messagesOf } from '../domain/message.ts'
import { isCallOfCode } from '../domain/step-key.ts'
import type { Envelope } from '../domain/tool.ts'
import { withoutThoughts } from './thoughts.ts'

/** Most calls of an answer that run, in order; further calls return as `NOT_RUN`. */
export const callsPerAnswer = 8

/** One entry of the conversation, before it is known how much of it fits into a request. */
export type TranscriptEntry =
  /** `causes`: the states of the hypotheses after this answer of the model. */
  | { kind: 'answer'; content: string; calls: ProposedCall[]; causes?: string[] }
  /** `call`: the proposed call; absent in scripted worlds. */
  | {
      kind: 'result'
      callId: string
      envelope: Envelope
      body: BodyRef | null
      call?: Pick<ProposedCall, 'tool' | 'arguments'>
      /** True for an old read, of which only the beginnings are shown. */
      isFolded?: true
    }
  | { kind: 'correction'; text: string }
  /** A message from a person to the run. */
  | { kind: 'message'; by: string; text: string }
  /**
   * Contents of the opening messages. The entry is not a message, but later answers do not repeat
   * its contents.
   */
  | { kind: 'context'; value: unknown }
export type ResultEntry = Extract<TranscriptEntry, { kind: 'result' }>

/**
 * Builds the conversation from an attempt's rows, oldest first. Every proposed call has exactly one
 * result, as the native protocol requires: the tool's answer, the refusal or denial, or that the
 * call was not run.
 */
export function conversation(events: readonly IncidentEvent[], attempt: number): TranscriptEntry[] {
  const entries: TranscriptEntry[] = []
  const results = new Map<string, ResultEntry>()
  const corrections = new Map<string, unknown[]>()
  const settle = (callId: string, envelope: Envelope, body: BodyRef | null = null) => {
    const result = results.get(callId)
    if (!result) return
    result.envelope = envelope
    result.body = body
  }
  const hypotheses = new Map<string, Hypothesis>()
  const messages = messagesOf(events)
  const tell = (which: (seq: number) => boolean) => {
    for (const { seq, by, text } of messages) if (which(seq)) entries.push({ kind: 'message', by, text })
  }
  for (const event of events) {
    if (event.attempt !== attempt) continue
    switch (event.kind) {
      case 'model_answered': {
        // Places a message before the answer whose request first contained it, whenever the message
        // was written.
        tell((seq) => event.metadata.read?.includes(seq) === true)
        const { content, calls } = event.metadata
        // Removes reasoning, which rows of earlier versions may hold.
        entries.push({ kind: 'answer', content: withoutThoughts(content), calls })
        for (const result of calls.map(openResult)) {
          results.set(result.callId, result)
          entries.push(result)
        }
        break
      }
      case 'call_judged':
        if (isCallOfCode(event.metadata.callId)) entries.push(...lookOfCode(event, results))
        if (event.metadata.verdict === 'refuse') settle(event.metadata.callId, refused(event))
        else corrections.set(event.metadata.callId, event.metadata.corrected ?? [])
        break
      case 'tool_finished': {
        const { callId, result, body, tool } = event.metadata
        // Reports the corrections that code made, because the result belongs to a call that differs
        // from the model's own words.
        const corrected = corrections.get(callId) ?? []
        const at = event.at.slice(11, 19)
        const meta = { ...result.meta, seq: event.seq, tool, at, ...(corrected.length > 0 && { corrected }) }
        settle(callId, { ...result, meta }, body)
        break
      }
      case 'verification':
        addVerification(results.get(event.metadata.callId), event)
        break
      case 'approval_decided':
        if (event.metadata.decision === 'deny') settle(event.metadata.callId, denied(event))
        break
      case 'commented': {
        const answer = entries.findLast((entry) => entry.kind === 'answer')
        addHypothesis(hypotheses, event)
        if (answer && hypotheses.size > 0) answer.causes = [...hypotheses.values()].map(formatHypothesis)
        break
      }
      case 'correction_sent':
        entries.push({ kind: 'correction', text: event.metadata.text })
        break
      default:
        break
    }
  }
  const unread = new Set(messages.filter(({ readIn }) => readIn === null).map(({ seq }) => seq))
  tell((seq) => unread.has(seq))
  return entries.filter((entry) => !isLookInVain(entry, results))
}

/**
 * Shows a read that code made like one of the model's, in a separate answer, which both protocols
 * can express.
 */
function lookOfCode(
  { metadata: { callId: id, tool, arguments: given } }: IncidentEvent<'call_judged'>,
  results: Map<string, ResultEntry>,
): TranscriptEntry[] {
  const call = { id, tool, arguments: given, problem: null }
  const result = openResult(call, 0)
  results.set(id, result)
  return [{ kind: 'answer', content: '', calls: [call] }, result]
}

/**
 * Adds a write's verification to its result. A read has nothing to verify, even if a person allowed
 * it.
 */
function addVerification(result: ResultEntry | undefined, { seq, metadata }: IncidentEvent<'verification'>): void {
  const { steps, outcome, postcondition, observed } = metadata
  if (!result || observed === readObserved) return
  result.envelope.meta.verification = { outcome, postcondition, observed, ...(steps && { steps }), seq }
}

/**
 * Whether an entry belongs to a failed read by code, which is left out: the model did not ask for
 * it and can read itself.
 */
function isLookInVain(entry: TranscriptEntry, results: ReadonlyMap<string, ResultEntry>): boolean {
  const id = entry.kind === 'result' ? entry.callId : entry.kind === 'answer' ? entry.calls[0]?.id : undefined
  return id !== undefined && isCallOfCode(id) && !results.get(id)?.envelope.ok
}

/** Builds the result of a proposed call for which no row has a result yet. */
function openResult(call: ProposedCall, index: number): ResultEntry {
  const envelope = notRun(call.tool, index >= callsPerAnswer)
  return { kind: 'result', callId: call.id, envelope, body: null, call }
}

/**
 * Adds the limits to the last message only, because earlier messages must stay as they were sent.
 */
export function withStanding(entries: readonly TranscriptEntry[], standing: string): TranscriptEntry[] {
  // Skips people's messages at the end of the conversation.
  const at = entries.findLastIndex(({ kind }) => kind !== 'message')
  const last = entries[at]
  if (last?.kind === 'correction') return entries.with(at, { ...last, text: `${last.text} (${standing})` })
  if (last?.kind !== 'result') return [...entries]
  return entries.with(at, {
    ...last,
    envelope: { ...last.envelope, meta: { ...last.envelope.meta, budget: standing } },
  })
}

function notRun(tool: string, isOneTooMany: boolean): Envelope {
  const reason = isOneTooMany
    ? `the first ${callsPerAnswer} calls of an answer are run, and this is a later call`
    : 'this call was not run'
  const hint = isOneTooMany ? 'Send the call again if it is still needed.' : null
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
      hint: 'Do not propose the same action again. Propose an action that respects the reason, or escalate and quote the reason.',
      details: { by: event.actor, category: event.metadata.category ?? 'other' },
    }),
    meta: { seq: event.seq },
  }
}

/**
 * Quotes a model's words in a message to the model: one line of at most `maxChars` code points,
 * with nothing that controls a terminal, hides text or closes the quotes.
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

const maxArgumentCharacters = 120

/** Shortens the text of a call's arguments. */
export function cut(text: string): string {
  return text.length <= maxArgumentCharacters ? text : `${text.slice(0, maxArgumentCharacters - 1).toWellFormed()}…`
}
