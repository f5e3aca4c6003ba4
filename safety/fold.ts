import { actionDigest } from '../domain/digest.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { type ResourceRef, resourceKey } from '../domain/resource.ts'
import type { Discovered } from '../domain/tool.ts'

/** A look-up older than this no longer lets a write name its target. Waiting for a person does not age it. */
export const resolvedForMs = 45 * 60_000
/** More names than an investigation can need; the oldest are forgotten first. */
export const resolvedLimit = 500

export type ResolvedEntry = { ref: ResourceRef; seq: number; atMs: number }

export type OpenWrite = { callId: string; tool: string; targets: ResourceRef[]; startedSeq: number }

export type State = {
  attempt: number
  /** Number of the newest row folded: goes into `call_judged`, so that a judgement can be repeated later. */
  lastSeq: number
  /** What this attempt has looked up, by resource key. */
  resolved: Map<string, ResolvedEntry>
  /** Keys by every name and alias a look-up told, for hints. */
  names: Map<string, Set<string>>
  /** A write that was started and whose verification has not closed: nothing else may be written meanwhile. */
  open: OpenWrite | null
  /** Writes in order, with what their verification said. */
  writes: { callId: string; tool: string; startedSeq: number; verified: 'open' | 'held' | 'not_held' }[]
  /** Rows that may be cited as evidence. */
  evidence: Set<number>
  /** Look-ups that were made, whether they succeeded or not: an escalation needs one, and a platform that is down is a finding. */
  diagnostics: number
  /** Resources that a successful read of this attempt looked at. */
  lookedAt: Set<string>
  /** The call judged last, to refuse its exact repetition. */
  lastCall: { callId: string; digest: string } | null
  /** Actions a person denied in this attempt. */
  denied: Set<string>
  corrections: number
  correctionsInARow: number
  tokens: number
  modelTurns: number
  /** Answered prose that was already corrected once. */
  proseCorrected: boolean
  hintFrom: string | null
}

/**
 * Folds the rows of one attempt into the state that judging needs. Pure and total: any prefix of a log folds, and equal rows
 * give equal states. Rows of other attempts are ignored, so that a new run starts with nothing looked up.
 */
export function fold(events: readonly IncidentEvent[], attempt: number): State {
  const state: State = {
    attempt,
    lastSeq: 0,
    resolved: new Map(),
    names: new Map(),
    open: null,
    writes: [],
    evidence: new Set(),
    diagnostics: 0,
    lookedAt: new Set(),
    lastCall: null,
    denied: new Set(),
    corrections: 0,
    correctionsInARow: 0,
    tokens: 0,
    modelTurns: 0,
    proseCorrected: false,
    hintFrom: null,
  }
  let waitingSinceMs: number | null = null
  for (const event of events) {
    state.lastSeq = Math.max(state.lastSeq, event.seq)
    if (event.kind === 'alert_received') state.evidence.add(event.seq)
    if (event.attempt !== attempt) continue
    if (event.kind === 'approval_requested') waitingSinceMs = Date.parse(event.at)
    if (waitingSinceMs !== null && endsWaiting(event)) {
      shiftLookUps(state, Date.parse(event.at) - waitingSinceMs)
      waitingSinceMs = null
    }
    apply(state, event)
  }
  return state
}

function apply(state: State, event: IncidentEvent): void {
  switch (event.kind) {
    case 'context_assembled':
      state.hintFrom = event.metadata.hintFrom
      break
    case 'model_answered':
      state.modelTurns += 1
      state.tokens += event.metadata.usage.promptTokens + event.metadata.usage.completionTokens
      break
    case 'correction_sent':
      state.corrections += 1
      state.correctionsInARow += 1
      if (event.metadata.code === 'prose_without_proof') state.proseCorrected = true
      break
    case 'call_judged':
      state.correctionsInARow = 0
      state.lastCall = {
        callId: event.metadata.callId,
        digest: actionDigest(event.metadata.tool, event.metadata.arguments ?? {}),
      }
      break
    case 'tool_started':
      if (event.metadata.effect === 'write') startWrite(state, event)
      break
    case 'tool_finished':
      finishTool(state, event)
      break
    case 'verification':
      verify(state, event)
      break
    case 'approval_decided':
      if (event.metadata.decision === 'deny') state.denied.add(event.metadata.actionDigest)
      break
    default:
      break
  }
}

function startWrite(state: State, event: IncidentEvent<'tool_started'>): void {
  const { callId, tool, targets } = event.metadata
  state.open = { callId, tool, targets, startedSeq: event.seq }
  state.writes.push({ callId, tool, startedSeq: event.seq, verified: 'open' })
}

function finishTool(state: State, event: IncidentEvent<'tool_finished'>): void {
  const { effect, result, targets, discovered } = event.metadata
  const looks = effect === 'read' || effect === 'resolve'
  if (looks) state.diagnostics += 1
  if (!result.ok) return
  state.evidence.add(event.seq)
  if (!looks) return
  for (const target of targets) state.lookedAt.add(resourceKey(target))
  for (const thing of discovered) remember(state, thing, event)
}

function verify(state: State, event: IncidentEvent<'verification'>): void {
  const { callId, outcome } = event.metadata
  if (outcome === 'open') return
  state.evidence.add(event.seq)
  for (const write of state.writes) if (write.callId === callId) write.verified = outcome
  if (state.open?.callId === callId) state.open = null
}

function remember(state: State, thing: Discovered, event: IncidentEvent): void {
  const key = resourceKey(thing)
  state.resolved.delete(key)
  state.resolved.set(key, { ref: { kind: thing.kind, id: thing.id }, seq: event.seq, atMs: Date.parse(event.at) })
  for (const name of [thing.id, thing.name, ...thing.aliases]) {
    const keys = state.names.get(name) ?? new Set()
    keys.add(key)
    state.names.set(name, keys)
  }
  if (state.resolved.size > resolvedLimit) {
    const oldest = state.resolved.keys().next().value
    if (oldest !== undefined) state.resolved.delete(oldest)
  }
}

function endsWaiting(event: IncidentEvent): boolean {
  return (
    event.kind === 'approval_expired' ||
    event.kind === 'approval_withdrawn' ||
    (event.kind === 'approval_decided' && event.metadata.status !== 'pending')
  )
}

function shiftLookUps(state: State, waitedMs: number): void {
  for (const entry of state.resolved.values()) entry.atMs += waitedMs
}
