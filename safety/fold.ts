import type { Changed } from '../domain/changed.ts'
import { saysNotYet, type VerificationOutcome } from '../domain/envelope.ts'
import type { EventMetadata, IncidentEvent } from '../domain/event.ts'
import { addHypothesis, type Hypothesis } from '../domain/hypothesis.ts'
import { refusalOf } from '../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { isCallOfCode } from '../domain/step-key.ts'
import { emptyResolved, type ResolvedNames, remember, rememberListed, shiftTimes } from './resolved.ts'

export type OpenWrite = { callId: string; tool: string; targets: ResourceRef[]; startedSeq: number }

/**
 * The newest read of a resource. `health`: the newest health that was read since the last write
 * began; null if no health was read since.
 */
type HealthObservation = { seq: number; atMs: number; health: string | null }

/**
 * A write of this attempt with its verification. `verifiedSeq`: the row that completed the
 * verification; null while the verification is open.
 */
export type WriteState = {
  callId: string
  tool: string
  arguments: Record<string, unknown>
  targets: ResourceRef[]
  startedSeq: number
  verified: VerificationOutcome
  verifiedSeq: number | null
  /**
   * Whether the write touched the monitoring that raises alerts. The end of an alert after such a
   * write shows nothing.
   */
  touchesMonitoring: boolean
  /** The changes that the result of the call reports; null if they are unknown. */
  changed: Changed
  /** Resources that were unhealthy at the newest read before the write. */
  illBefore: string[]
  /** Alerts that began after the write, whose ends show nothing about the write. */
  laterAlerts: string[]
  /** Whether an alert that fired when the write began has ended since. */
  hasEndedAlert: boolean
}

export type Phase = 'RESOLVING' | 'READING' | 'VERIFYING'

export type SafetyState = {
  attempt: number
  /**
   * The newest row that was folded. The number of the row is stored in `call_judged`, so that a
   * judgement can be repeated.
   */
  lastSeq: number
  resolved: ResolvedNames
  /** A started write without a verification. No other write may start before its verification. */
  open: OpenWrite | null
  /** Writes in order, with their verifications. */
  writes: WriteState[]
  /** Alerts that fire according to the rows. */
  firing: Set<string>
  /** Rows that may be cited. */
  evidence: Set<number>
  /** Rows with which claims, a resolution and a reason are compared. */
  rows: IncidentEvent[]
  /**
   * Number of reads, failed or not. An escalation needs one, and a read of an unreachable platform
   * counts.
   */
  diagnostics: number
  /** Number of successful reads. */
  reads: number
  /** Resources that a successful read of this attempt was about. */
  lookedAt: Set<string>
  /** The newest read of each resource. */
  looks: Map<string, HealthObservation>
  /**
   * The last judged calls, oldest first, kept to refuse repetitions. A write between two calls
   * makes a repetition legitimate.
   */
  recent: { callId: string; tool: string; arguments: Record<string, unknown> | null }[]
  /** Actions that a person denied in this attempt. */
  denied: Set<string>
  /** Number of refusals of repeated calls. */
  loops: number
  /**
   * The number of consecutive turns whose calls were all refused for the same fault of form, and
   * the last of these turns.
   */
  unformed: { code: string; turns: number; lastTurn: number | null } | null
  /** Number of refusals for wording; after the first one, wording is only marked. */
  phantoms: number
  corrections: number
  correctionsInARow: number
  /** Codes of the corrections that were sent: each is sent once. */
  corrected: Set<string>
  tokens: number
  modelTurns: number
  /** Bytes of all results. */
  bytes: number
  /**
   * Milliseconds from the start of the run (its row `claimed`) to the newest row, without the time
   * in which the run waited for people or for a slot of the model.
   */
  workedMs: number
  /** Refusals from which the model can recover, by tool, until a call of this tool succeeds. */
  recovering: Map<string, string>
  recoveries: { attempted: number; succeeded: number }
  hintFrom: string | null
  /** Hypotheses of this attempt, by id. */
  hypotheses: Map<string, Hypothesis>
}

/**
 * Returns the phase. RESOLVING: no resource was looked up yet. READING: a resource was looked up.
 * VERIFYING: a write waits for its verification.
 */
export function phaseOf(state: SafetyState): Phase {
  if (state.open) return 'VERIFYING'
  return state.resolved.entries.size === 0 ? 'RESOLVING' : 'READING'
}

/**
 * Folds one attempt's rows into the state for judging. Pure and total: any prefix of the rows can
 * be folded, and equal rows give equal states. Ignores rows of other attempts, because a new run
 * has looked up nothing. `pinned`: the incident's resource.
 */
export function fold(
  events: readonly IncidentEvent[],
  attempt: number,
  pinned: ResourceRef | null = null,
): SafetyState {
  const state = emptyState(attempt, pinned)
  const messages = new Map<number, IncidentEvent<'commented'>>()
  const clock: Clock = { beganMs: null, waitedMs: 0, waitingSinceMs: null, pending: new Set(), joined: new Map() }
  for (const event of events) {
    state.lastSeq = Math.max(state.lastSeq, event.seq)
    // Reads alerts of all attempts, because an alert belongs to the incident: each attempt may cite
    // it.
    if (event.kind === 'alert_received') {
      cite(state, event)
      hearAlert(state, event.metadata)
    }
    if (event.kind === 'commented' && event.metadata.named) messages.set(event.seq, event)
    if (event.attempt !== attempt) continue
    if (event.kind === 'model_answered') readMessages(state, event, messages)
    passTime(state, clock, event)
    apply(state, event)
  }
  return state
}

/**
 * Records an alert. An alert that fired when a write began and ended after it supports the write; a
 * later alert does not.
 */
function hearAlert(
  state: SafetyState,
  { fingerprint, status, endReason }: Pick<EventMetadata['alert_received'], 'fingerprint' | 'status' | 'endReason'>,
): void {
  if (status === 'firing') {
    if (!state.firing.has(fingerprint)) for (const write of state.writes) write.laterAlerts.push(fingerprint)
    state.firing.add(fingerprint)
    return
  }
  state.firing.delete(fingerprint)
  // Ignores an alert that ended because its rule was paused, updated or deleted.
  if (endReason !== undefined) return
  for (const write of state.writes) write.hasEndedAlert ||= !write.laterAlerts.includes(fingerprint)
}

/**
 * Adds the names in a person's message to the known names, from the turn that read the message. The
 * resources were not read, so there is no evidence and their health is unknown.
 */
function readMessages(
  state: SafetyState,
  answered: IncidentEvent<'model_answered'>,
  messages: ReadonlyMap<number, IncidentEvent<'commented'>>,
): void {
  for (const seq of answered.metadata.read ?? []) {
    const named = messages.get(seq)?.metadata.named ?? []
    for (const thing of named) remember(state.resolved, thing, seq, Date.parse(answered.at), true)
  }
}

function emptyState(attempt: number, pinned: ResourceRef | null): SafetyState {
  return {
    attempt,
    lastSeq: 0,
    resolved: emptyResolved(pinned),
    open: null,
    writes: [],
    firing: new Set(),
    evidence: new Set(),
    rows: [],
    diagnostics: 0,
    reads: 0,
    lookedAt: new Set(),
    looks: new Map(),
    recent: [],
    denied: new Set(),
    loops: 0,
    unformed: null,
    phantoms: 0,
    corrections: 0,
    correctionsInARow: 0,
    corrected: new Set(),
    tokens: 0,
    modelTurns: 0,
    bytes: 0,
    workedMs: 0,
    recovering: new Map(),
    recoveries: { attempted: 0, succeeded: 0 },
    hintFrom: null,
    hypotheses: new Map(),
  }
}

/**
 * `pending`: open approvals. While a run works on one call, it does not wait for the open approvals
 * of other calls.
 */
type Clock = {
  beganMs: number | null
  waitedMs: number
  waitingSinceMs: number | null
  pending: Set<string>
  /** Approvals of other incidents for which a call waits, by call. */
  joined: Map<string, string>
}

function passTime(state: SafetyState, clock: Clock, event: IncidentEvent): void {
  const atMs = Date.parse(event.at)
  if (event.kind === 'claimed') clock.beganMs ??= atMs
  const joins = event.kind === 'call_judged' && joinOrLeave(clock, event)
  if (event.kind === 'approval_requested') clock.pending.add(event.metadata.approvalId)
  if (isSettled(event)) clock.pending.delete(event.metadata.approvalId)
  if (joins || event.kind === 'approval_requested' || (isCallOver(event) && clock.pending.size > 0))
    clock.waitingSinceMs ??= atMs
  const isAtWork = event.kind === 'tool_started' || clock.pending.size === 0
  if (clock.waitingSinceMs !== null && isAtWork) {
    const waitedMs = Math.max(0, atMs - clock.waitingSinceMs)
    clock.waitedMs += waitedMs
    clock.waitingSinceMs = null
    shiftTimes(state.resolved, waitedMs)
  }
  // Counts the wait for a slot of the model as waiting, because the run does no work then.
  if (event.kind === 'model_answered') clock.waitedMs += event.metadata.waitedMs ?? 0
  if (clock.beganMs !== null) state.workedMs = Math.max(0, atMs - clock.beganMs - clock.waitedMs)
}

/**
 * Records whether the call waits for another incident's approval. A later ruling ends that wait.
 */
function joinOrLeave({ pending, joined }: Clock, { metadata }: IncidentEvent<'call_judged'>): boolean {
  const { callId, approvalId, joins } = metadata
  pending.delete(joined.get(callId) ?? '')
  if (joins === undefined || approvalId === null) return false
  joined.set(callId, approvalId)
  pending.add(approvalId)
  return true
}

/** Whether a call is finished; a write is finished when it is verified. */
function isCallOver(event: IncidentEvent): boolean {
  return event.kind === 'verification' || (event.kind === 'tool_finished' && event.metadata.effect !== 'write')
}

function isSettled(
  event: IncidentEvent,
): event is IncidentEvent<'approval_expired' | 'approval_withdrawn' | 'approval_decided'> {
  return (
    event.kind === 'approval_expired' ||
    event.kind === 'approval_withdrawn' ||
    (event.kind === 'approval_decided' && event.metadata.status !== 'pending')
  )
}

function apply(state: SafetyState, event: IncidentEvent): void {
  switch (event.kind) {
    case 'context_assembled':
      state.hintFrom = event.metadata.hintFrom
      state.rows.push(event)
      break
    case 'model_answered':
      state.modelTurns += 1
      state.tokens += event.metadata.usage.promptTokens + event.metadata.usage.completionTokens
      break
    case 'correction_sent':
      state.corrected.add(event.metadata.code)
      if (isWarning(event.metadata.code)) break
      state.corrections += 1
      state.correctionsInARow += 1
      break
    case 'call_judged':
      judged(state, event)
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
    case 'commented':
      addHypothesis(state.hypotheses, event)
      break
    default:
      break
  }
}

/**
 * Whether a correction is only a warning of a near limit, after which nothing has to be repeated.
 */
function isWarning(code: string): boolean {
  return code.startsWith('budget_')
}

/**
 * Most recent calls that are kept for comparison. The longest loop that is detected needs only
 * eight (`ruling.ts`).
 */
const maxRecentCalls = 60
const wordings = new Set(['PHANTOM_CLAIM', 'CLAIM_NOT_SHOWN'])

function cite(state: SafetyState, event: IncidentEvent): void {
  state.evidence.add(event.seq)
  state.rows.push(event)
}

function judged(state: SafetyState, event: IncidentEvent<'call_judged'>): void {
  const { callId, tool, verdict, code } = event.metadata
  // Ignores the ruling on a call that code itself made. The call counts only once it is answered,
  // because its refusal tells nothing about the model.
  if (isCallOfCode(callId)) return
  state.correctionsInARow = 0
  // Allows an ending that was refused only for its wording to be repeated; it is then marked.
  const isFirstWording = verdict === 'refuse' && wordings.has(code) && state.phantoms === 0
  if (!isFirstWording && state.recent.every((each) => each.callId !== callId)) {
    // Keeps the arguments, because digests are computed when a call is judged, not here.
    pushRecent(state, { callId, tool, arguments: event.metadata.arguments })
  }
  if (event.metadata.corrected?.length) recovering(state, tool, event.metadata.corrected[0]?.code ?? code)
  state.unformed = unformedAfter(state.unformed, event)
  if (verdict !== 'refuse') return
  // Makes a refusal and its reason citable as a finding, unless they only repeat the model's words.
  if (!wordings.has(code)) cite(state, event)
  const { recoverable, loop } = refusalOf(code)
  if (loop) state.loops += 1
  if (wordings.has(code)) state.phantoms += 1
  if (recoverable) recovering(state, tool, code)
}

function pushRecent(state: SafetyState, call: SafetyState['recent'][number]): void {
  state.recent.push(call)
  if (state.recent.length > maxRecentCalls) state.recent.shift()
}

/**
 * Counts consecutive turns whose calls all had the same fault of form. Any other ruling resets the
 * count.
 */
export function unformedAfter(
  before: SafetyState['unformed'],
  {
    turn,
    metadata: { verdict, code },
  }: Pick<IncidentEvent<'call_judged'>, 'turn'> & {
    metadata: { verdict: string; code: string }
  },
): SafetyState['unformed'] {
  if (verdict !== 'refuse' || !refusalOf(code).form) return null
  if (before?.code !== code) return { code, turns: 1, lastTurn: turn }
  return { code, turns: before.turns + (before.lastTurn === turn ? 0 : 1), lastTurn: turn }
}

function recovering(state: SafetyState, tool: string, code: string): void {
  state.recovering.set(tool, code)
  state.recoveries.attempted += 1
}

/** Matches programs, files and words of the monitoring that raises alerts about a platform. */
const monitoring =
  /alert-?manager|amtool|promtool|prometheus|grafana|vmalert|victoria-?metrics|thanos|mimir|loki|[a-z]+[-_]exporter|node_exporter|blackbox|zabbix|nagios|icinga|telegraf|netdata/i

/**
 * Whether a call's names and actions touch monitoring. The reason is left out, because it may
 * mention alerts.
 */
function touchesMonitoring({ reason: _, ...named }: Record<string, unknown>): boolean {
  return monitoring.test(JSON.stringify(named))
}

/**
 * Whether a health value counts as healthy. An unknown health counts as healthy, because then the
 * alerts decide whether the resource is well.
 */
export function isWell(health: string): boolean {
  return health === 'nominal' || health === 'unknown'
}

function startWrite(state: SafetyState, event: IncidentEvent<'tool_started'>): void {
  const { callId, tool, targets } = event.metadata
  state.open = { callId, tool, targets, startedSeq: event.seq }
  state.writes.push({
    callId,
    tool,
    arguments: event.metadata.arguments,
    targets,
    startedSeq: event.seq,
    verified: 'open',
    verifiedSeq: null,
    touchesMonitoring: touchesMonitoring(event.metadata.arguments),
    changed: null,
    illBefore: [...state.looks].flatMap(([key, { health }]) => (health !== null && !isWell(health) ? [key] : [])),
    laterAlerts: [],
    hasEndedAlert: false,
  })
  // Forgets earlier reads, because a read may be repeated after a write. Keeps the last call,
  // because the same write may not follow at once.
  state.recent = state.recent.slice(-1)
}

function finishTool(state: SafetyState, event: IncidentEvent<'tool_finished'>): void {
  const { callId, tool, effect, result, body, targets, discovered, listed } = event.metadata
  const looks = effect === 'read' || effect === 'resolve'
  if (looks) state.diagnostics += 1
  state.bytes += body?.bytes ?? JSON.stringify(result.data ?? null).length
  // Makes a failed call citable too, because it is a finding with a reason.
  cite(state, event)
  if (gotNoVerdict(event)) state.recent = state.recent.filter(({ callId }) => callId !== event.metadata.callId)
  if (effect === 'write') noteChanged(state, event.metadata)
  if (!result.ok) return
  if (isCallOfCode(callId)) pushRecent(state, { callId, tool, arguments: event.metadata.arguments })
  if (state.recovering.delete(tool)) state.recoveries.succeeded += 1
  if (!looks) return
  state.reads += 1
  const named = new Set(targets.map(resourceKey))
  const atMs = Date.parse(event.at)
  for (const thing of discovered) remember(state.resolved, thing, event.seq, atMs, named.has(resourceKey(thing)))
  if (listed) rememberListed(state.resolved, listed.on, listed.names, atMs)
  const told = new Map(discovered.filter((each) => each.seen).map((each) => [resourceKey(each), each.health ?? null]))
  for (const key of new Set([...named, ...told.keys()])) look(state, key, event.seq, atMs, told.get(key) ?? null)
}

function noteChanged({ writes }: SafetyState, { callId, changed = null }: EventMetadata['tool_finished']): void {
  for (const write of writes) if (write.callId === callId) write.changed = changed
}

/**
 * Whether this call was sent and its receiver gave no answer. The call then counts as not made, so
 * that a lost hand-over can be repeated.
 */
function gotNoVerdict({ metadata: { effect, result } }: IncidentEvent<'tool_finished'>): boolean {
  const details = result.error?.details
  if (!details) return false
  return (effect === 'terminal' && details.rule === 'UNANSWERED') || saysNotYet(details.status, details.rule)
}

/**
 * Records a read. A read without health (of a file, a process) keeps the last health, unless a
 * write began since.
 */
function look(state: SafetyState, key: string, seq: number, atMs: number, told: string | null): void {
  const known = state.looks.get(key)
  const lastWriteSeq = state.writes.at(-1)?.startedSeq ?? 0
  const health = told ?? (known && known.seq > lastWriteSeq ? known.health : null)
  state.lookedAt.add(key)
  state.looks.set(key, { seq, atMs, health })
}

/** Records a verification. `held`, `not_held` and `unproven` complete it; `open` does not. */
function verify(state: SafetyState, event: IncidentEvent<'verification'>): void {
  const { callId, outcome } = event.metadata
  if (outcome === 'open') return
  cite(state, event)
  for (const write of state.writes) {
    if (write.callId === callId) Object.assign(write, { verified: outcome, verifiedSeq: event.seq })
  }
  if (state.open?.callId === callId) state.open = null
}
