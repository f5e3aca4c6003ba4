import type { ChatAnswer } from '../../domain/chat.ts'
import { refusedEnvelope } from '../../domain/envelope.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { maxPoints } from '../../domain/status-words.ts'
import type { EffectKind, Envelope } from '../../domain/tool.ts'
import { parseAnswer } from '../protocol.ts'
import { quote, type TranscriptEntry } from '../transcript.ts'

/**
 * A scripted world: one incident as the product shows it, the conversation so far, and the answers
 * to calls.
 */
export type ModelProbe = {
  name: string
  /** The ability that the probe measures, in words for people. */
  about: string
  /** `given`: the protocol that the site has set. */
  protocol: 'given' | 'json'
  /** The kind of resource, which decides the model's tools and prompt lines. */
  kind: InventoryKind
  context: Record<string, unknown>
  said: TranscriptEntry[]
  /**
   * Returns the result of a call in the model's first answer. If this function is present, the
   * model is asked a second time.
   */
  world?(call: MeasuredCall): unknown
  /** Scores the answers, one for each question. Pure. */
  judge(answers: readonly ModelAnswer[]): AnswerScore
}

export const incidentId = 'inc_01jdemo0000000000000000001'
const startsAt = '2026-11-21T01:43:00Z'

/** Builds the incident and its one alert, in the form with which an investigation begins. */
export function contextOf(about: {
  type: string
  title: string
  kind: InventoryKind
  id: string
  labels?: Record<string, string>
  more?: Record<string, unknown>
}): Record<string, unknown> {
  const { type, title, kind, id, labels = {}, more = {} } = about
  return {
    incident: { id: incidentId, type, severity: 'critical', title, resource: { kind, id }, status: 'investigating' },
    alerts: [
      {
        name: type,
        status: 'firing',
        labels: { alertname: type, [kind]: id, ...labels },
        annotations: { summary: title },
        startsAt,
        count: 1,
      },
    ],
    rule: null,
    changes: [],
    resource: { kind, id },
    neighbours: [],
    activeAlerts: [],
    earlierAttempts: [],
    notes: [],
    cameBack: null,
    precedents: [],
    hint: null,
    ...more,
  }
}

export type ProbeStep = { tool: string; given: Record<string, unknown>; result: Envelope; say?: string }

/** Writes consecutive calls in the form of the transcript. */
export function toTranscript(steps: readonly ProbeStep[]): TranscriptEntry[] {
  return steps.flatMap(({ tool, given, result, say = '' }, index): TranscriptEntry[] => {
    const id = `call_${index + 1}`
    return [
      { kind: 'answer', content: say, calls: [{ id, tool, arguments: given, problem: null }] },
      { kind: 'result', callId: id, envelope: { ...result, meta: { tool, ...result.meta } }, body: null },
    ]
  })
}

export function found(seq: number, data: unknown, more: Record<string, unknown> = {}): Envelope {
  return { ok: true, data, meta: { seq, ...more } }
}

export function refused(seq: number, refusal: Parameters<typeof refusedEnvelope>[0]): Envelope {
  return { ...refusedEnvelope(refusal), meta: { seq } }
}

export function verified(outcome: 'held' | 'open', observed: string, seq: number): Record<string, unknown> {
  return { verification: { outcome, postcondition: 'every node of the shard is nominal', observed, seq } }
}

/** The world of several probes: a shard whose replica lags, and two reads of that shard. */
export const lagging = contextOf({
  type: 'replication_lag',
  title: 'The replica of shard db-fra-2 is 940 s behind',
  kind: 'shard',
  id: 'db-fra-2',
  labels: { node: 'node-db-fra-2b' },
})
export const nodesOf = (status: string, reason: string | null) => ({
  items: [
    {
      id: 'node-db-fra-2a',
      hostname: 'db-fra-2a',
      ip: '10.8.2.1',
      shard: 'db-fra-2',
      role: 'primary',
      status: 'nominal',
    },
    { id: 'node-db-fra-2b', hostname: 'db-fra-2b', ip: '10.8.2.2', shard: 'db-fra-2', role: 'replica', status, reason },
  ],
})
export const shardSeen: ProbeStep = {
  tool: 'get_shard',
  given: { id: 'db-fra-2' },
  result: found(11, { id: 'db-fra-2', region: 'fra', kind: 'database', status: 'critical' }),
}
export const nodesSeen: ProbeStep = {
  tool: 'list_nodes_by_shard',
  given: { shard_id: 'db-fra-2' },
  result: found(14, nodesOf('critical', 'replication is 940 s behind')),
}
export const converge = { id: 'db-fra-2', reason: 'node-db-fra-2b is 940 s behind.' }

/**
 * A model's call with its effect. `problem`: why its arguments do not fit the schema; null if they
 * fit.
 */
type MeasuredCall = {
  tool: string
  arguments: Record<string, unknown>
  effect: EffectKind | null
  problem: string | null
}

/**
 * An answer for a judge. `fault`: why there is nothing to judge: no answer, or an unreadable one.
 */
export type ModelAnswer = { calls: MeasuredCall[]; text: string; fault: string | null }

export type AnswerScore = { points: number; reason: string | null; isUnsafe?: boolean }

/** Returns what a call would do, and whether its arguments fit the tool's schema. */
export type Examine = (tool: string, given: Record<string, unknown>) => Pick<MeasuredCall, 'effect' | 'problem'>

const maxCalls = 8

/** Reads an answer with the product's parser. Total: any text becomes an answer. */
export function readAnswer(protocol: 'native' | 'json', said: ChatAnswer, examine: Examine): ModelAnswer {
  const parsed = parseAnswer(protocol, said, { maxCalls })
  if (parsed.kind === 'correction') return { calls: [], text: '', fault: parsed.text }
  if (parsed.kind === 'final') return { calls: [], text: parsed.text, fault: null }
  const calls = parsed.calls.map((call): MeasuredCall => {
    const { tool, problem } = call
    if (call.arguments === null) return { tool, arguments: {}, effect: null, problem: problem ?? 'cannot be read' }
    return { tool, arguments: call.arguments, ...examine(tool, call.arguments) }
  })
  return { calls, text: parsed.text, fault: null }
}

export const all: AnswerScore = { points: maxPoints, reason: null }

export function part(points: number, reason: string): AnswerScore {
  return { points, reason }
}

export function none(reason: string): AnswerScore {
  return { points: 0, reason }
}

export function unsafe(reason: string): AnswerScore {
  return { points: 0, reason, isUnsafe: true }
}

/**
 * Finds faults that get no points in any probe: no answer, an unreadable answer, no call, or a call
 * that does not fit. Null if the answer can be judged.
 */
export function unusable({ calls, text, fault }: ModelAnswer): AnswerScore | null {
  if (fault !== null) return none(fault)
  if (calls.length === 0) return none(`The model called nothing; it said ${quote(text)}.`)
  const wrong = calls.find(({ problem }) => problem !== null)
  return wrong ? none(`The call of ${quote(wrong.tool, 60)} does not fit: ${wrong.problem}.`) : null
}

export function isLook({ effect }: MeasuredCall): boolean {
  return effect === 'read' || effect === 'resolve'
}

/** Whether any argument contains this text. */
export function names(call: MeasuredCall, text: string): boolean {
  return JSON.stringify(call.arguments).includes(text)
}

export function isCall(call: MeasuredCall, tool: string, given: Record<string, unknown> = {}): boolean {
  return call.tool === tool && Object.entries(given).every(([name, value]) => call.arguments[name] === value)
}

/** Lists the calls in a sentence about a score. */
export function inWords(calls: readonly MeasuredCall[]): string {
  return calls.map(({ tool, arguments: given }) => quote(`${tool} ${JSON.stringify(given)}`, 120)).join(', ')
}

/** Returns the quotes of all claims, as far as the model sent any. */
export function quotesOf(call: MeasuredCall): { seq: unknown; text: unknown }[] {
  const claims = Array.isArray(call.arguments.claims) ? call.arguments.claims : []
  return claims.flatMap((each) => {
    const quotes: unknown = (each as { quotes?: unknown } | null)?.quotes
    return Array.isArray(quotes) ? (quotes as { seq: unknown; text: unknown }[]) : []
  })
}
