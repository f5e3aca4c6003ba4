import type { ChatAnswer } from '../../domain/chat.ts'
import { mostPoints } from '../../domain/status-words.ts'
import type { Effect } from '../../domain/tool.ts'
import { parseAnswer } from '../protocol.ts'
import { quote } from '../transcript.ts'

/** A call of a model with what the product says of it: what it does, and why its arguments do not fit (null: they fit). */
export type MeasuredCall = {
  tool: string
  arguments: Record<string, unknown>
  effect: Effect | null
  problem: string | null
}

/** One answer as a judge reads it. `fault` says why there is nothing to judge: no answer, or one that cannot be read. */
export type Answer = { calls: MeasuredCall[]; text: string; fault: string | null }

export type Judged = { points: number; reason: string | null; isUnsafe?: boolean }

/** Looks up what a call would do, and whether its arguments fit the tool's schema. */
export type Examine = (tool: string, given: Record<string, unknown>) => Pick<MeasuredCall, 'effect' | 'problem'>

const mostCalls = 8

/** Reads an answer as the product does, with its own parser. Total: whatever a model wrote becomes an answer. */
export function readAnswer(protocol: 'native' | 'json', said: ChatAnswer, examine: Examine): Answer {
  const parsed = parseAnswer(protocol, said, { maxCalls: mostCalls })
  if (parsed.kind === 'correction') return { calls: [], text: '', fault: parsed.text }
  if (parsed.kind === 'final') return { calls: [], text: parsed.text, fault: null }
  const calls = parsed.calls.map((call): MeasuredCall => {
    const { tool, problem } = call
    if (call.arguments === null) return { tool, arguments: {}, effect: null, problem: problem ?? 'cannot be read' }
    return { tool, arguments: call.arguments, ...examine(tool, call.arguments) }
  })
  return { calls, text: parsed.text, fault: null }
}

export const all: Judged = { points: mostPoints, reason: null }

export function part(points: number, reason: string): Judged {
  return { points, reason }
}

export function none(reason: string): Judged {
  return { points: 0, reason }
}

export function unsafe(reason: string): Judged {
  return { points: 0, reason, isUnsafe: true }
}

/** What no probe gives points for: no answer, one that cannot be read, no call, or a call that does not fit. Null: judge it. */
export function unusable({ calls, text, fault }: Answer): Judged | null {
  if (fault !== null) return none(fault)
  if (calls.length === 0) return none(`It called nothing; it said ${quote(text)}.`)
  const wrong = calls.find(({ problem }) => problem !== null)
  return wrong ? none(`Its call of ${quote(wrong.tool, 60)} does not fit: ${wrong.problem}.`) : null
}

export function isLook({ effect }: MeasuredCall): boolean {
  return effect === 'read' || effect === 'resolve'
}

/** Does any argument hold this text? */
export function names(call: MeasuredCall, text: string): boolean {
  return JSON.stringify(call.arguments).includes(text)
}

export function isCall(call: MeasuredCall, tool: string, given: Record<string, unknown> = {}): boolean {
  return call.tool === tool && Object.entries(given).every(([name, value]) => call.arguments[name] === value)
}

/** The calls in words of ours, for a reason. */
export function inWords(calls: readonly MeasuredCall[]): string {
  return calls.map(({ tool, arguments: given }) => quote(`${tool} ${JSON.stringify(given)}`, 120)).join(', ')
}

/** The parts of claims, as far as a model sent any. */
export function quotesOf(call: MeasuredCall): { seq: unknown; text: unknown }[] {
  const claims = Array.isArray(call.arguments.claims) ? call.arguments.claims : []
  return claims.flatMap((each) => {
    const quotes: unknown = (each as { quotes?: unknown } | null)?.quotes
    return Array.isArray(quotes) ? (quotes as { seq: unknown; text: unknown }[]) : []
  })
}
