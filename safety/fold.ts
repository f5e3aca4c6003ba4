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
 * The newest look at a resource. `health`: the last told since the last write began; null where
 * none was.
 */
type HealthObservation = { seq: number; atMs: number; health: string | null }

/**
 * A write of this attempt with its verification; `verifiedSeq`: the row that closed it, null while
 * open.
 */
export type WriteState = {
  callId: string
  tool: string
  arguments: Record<string, unknown>
  targets: ResourceRef[]
  startedSeq: number
  verified: VerificationOutcome
  verifiedSeq: number | null
  /** It named what raises alerts: that an alert ended after it shows nothing. */
  touchesMonitoring: boolean
  /** What it changed, as its receiver says. */
  changed: Changed
  /** Resources whose newest look before it was not well. */
  illBefore: string[]
  /** Alerts that began after it: their ends show nothing of it. */
  laterAlerts: string[]
  /** An alert that fired when it began has ended since. */
  hasEndedAlert: boolean
}

export type Phase = 'RESOLVING' | 'READING' | 'VERIFYING'

export type SafetyState = {
  attempt: number
  /** The newest folded row: goes into `call_judged`, so that a judgement can be repeated. */
  lastSeq: number
  resolved: ResolvedNames
  /** A started write with an open verification: nothing else may be written meanwhile. */
  open: OpenWrite | null
  /** Writes in order, with what their verification said. */
  writes: WriteState[]
  /** Alerts that fire, by the rows. */
  firing: Set<string>
  /** Rows that may be cited as evidence. */
  evidence: Set<number>
  /** The rows that claims, a resolution and a reason are held against. */
  rows: IncidentEvent[]
  /** Look-ups, failed or not: an escalation needs one, and a platform that is down is a finding. */
  diagnostics: number
  /** Look-ups that answered. */
  reads: number
  /** Resources that a successful read of this attempt looked at. */
  lookedAt: Set<string>
  /** The newest of these looks at each. */
  looks: Map<string, HealthObservation>
  /**
   * The last judged calls, oldest first, to refuse their repetition. A write in between ends a
   * pattern.
   */
  recent: { callId: string; tool: string; arguments: Record<string, unknown> | null }[]
  /** Actions a person denied in this attempt. */
  denied: Set<string>
  /** Refusals for going round in circles. */
  loops: number
  /** Turns in a row whose calls were all refused for one reason of form, and the last of them. */
  unformed: { code: string; turns: number; lastTurn: number | null } | null
  /** Claims refused for their wording: it happens once. */
  phantoms: number
  corrections: number
  correctionsInARow: number
  /** Codes of corrections already sent: each kind of warning comes once. */
  corrected: Set<string>
  tokens: number
  modelTurns: number
  /** Bytes of results. */
  bytes: number
  /** From the claim to the newest row, without waiting for people. */
  workedMs: number
  /** Refusals the model could get past by itself, by tool, until the same tool succeeds. */
  recovering: Map<string, string>
  recoveries: { attempted: number; succeeded: number }
  hintFrom: string | null
  /** What this attempt takes for the cause, by id. */
  hypotheses: Map<string, Hypothesis>
}

/** RESOLVING: nothing looked up. READING: something is. VERIFYING: a write waits for a look. */
export function phaseOf(state: SafetyState): Phase {
  if (state.open) return 'VERIFYING'
  return state.resolved.entries.size === 0 ? 'RESOLVING' : 'READING'
}

/**
 * Folds one attempt's rows into the state for judging. Pure and total: any prefix folds, and equal
 * rows give equal states. Ignores rows of other attempts, so that a new run starts with nothing
 * looked up. `pinned`: the incident's resource.
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
    // An alert belongs to the incident, not to an attempt: it may be cited in each.
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
 * An alert that fired when a write began and ended after it speaks for the write; a later one does
 * not.
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
  // A pause, an update or a deleted rule ends an alert without good news.
  if (endReason !== undefined) return
  for (const write of state.writes) write.hasEndedAlert ||= !write.laterAlerts.includes(fingerprint)
}

/**
 * A name in a person's message counts as looked for from the turn that read it. It was not looked
 * at: no evidence, and its health is unknown.
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
 * `pending`: approvals that nobody settled. A run that works on one call meanwhile does not wait
 * for the others.
 */
type Clock = {
  beganMs: number | null
  waitedMs: number
  waitingSinceMs: number | null
  pending: Set<string>
  /** By call: the question of another incident that it waits for. */
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
  // Others had the model: that is no work of this run.
  if (event.kind === 'model_answered') clock.waitedMs += event.metadata.waitedMs ?? 0
  if (clock.beganMs !== null) state.workedMs = Math.max(0, atMs - clock.beganMs - clock.waitedMs)
}

/** Whether the call waits for another incident's question. A later ruling on it ends that. */
function joinOrLeave({ pending, joined }: Clock, { metadata }: IncidentEvent<'call_judged'>): boolean {
  const { callId, approvalId, joins } = metadata
  pending.delete(joined.get(callId) ?? '')
  if (joins === undefined || approvalId === null) return false
  joined.set(callId, approvalId)
  pending.add(approvalId)
  return true
}

/** Nothing more is done for a call: a write is over when it was verified. */
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

/** A word that a limit is near asks for nothing to be said again, so it is no correction. */
function isWarning(code: string): boolean {
  return code.startsWith('budget_')
}

/** Enough to know a call again; two rounds of the longest loop are eight (`ruling.ts`). */
const maxRecentCalls = 60
const wordings = new Set(['PHANTOM_CLAIM', 'CLAIM_NOT_SHOWN'])

function cite(state: SafetyState, event: IncidentEvent): void {
  state.evidence.add(event.seq)
  state.rows.push(event)
}

function judged(state: SafetyState, event: IncidentEvent<'call_judged'>): void {
  const { callId, tool, verdict, code } = event.metadata
  // A look of code counts where it answered: its refusal says nothing of the model.
  if (isCallOfCode(callId)) return
  state.correctionsInARow = 0
  // An ending refused for its words alone may come again as it is: it is then marked.
  const isFirstWording = verdict === 'refuse' && wordings.has(code) && state.phantoms === 0
  if (!isFirstWording && state.recent.every((each) => each.callId !== callId)) {
    // Compared by digest only when a call is judged: folding hashes nothing.
    pushRecent(state, { callId, tool, arguments: event.metadata.arguments })
  }
  if (event.metadata.corrected?.length) recovering(state, tool, event.metadata.corrected[0]?.code ?? code)
  state.unformed = unformedAfter(state.unformed, event)
  if (verdict !== 'refuse') return
  // A refusal and its reason are a finding; those that only repeat the model's words are not.
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

/** Counts turns in a row whose calls were all refused for one form. Any other ruling resets it. */
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

/** Programs, files and words of what watches a platform and raises its alerts. */
const monitoring =
  /alert-?manager|amtool|promtool|prometheus|grafana|vmalert|victoria-?metrics|thanos|mimir|loki|[a-z]+[-_]exporter|node_exporter|blackbox|zabbix|nagios|icinga|telegraf|netdata/i

/** For a call's names and deeds; its reason may speak of alerts. */
function touchesMonitoring({ reason: _, ...named }: Record<string, unknown>): boolean {
  return monitoring.test(JSON.stringify(named))
}

/** Unknown is not known to be ill: the alert decides then. */
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
  // Earlier reads mean something else now; only the write itself must not come again at once.
  state.recent = state.recent.slice(-1)
}

function finishTool(state: SafetyState, event: IncidentEvent<'tool_finished'>): void {
  const { callId, tool, effect, result, body, targets, discovered, listed } = event.metadata
  const looks = effect === 'read' || effect === 'resolve'
  if (looks) state.diagnostics += 1
  state.bytes += body?.bytes ?? JSON.stringify(result.data ?? null).length
  // That a call failed, and why, is a finding too.
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
 * Whether this call was sent and nothing decided: it counts as not made, since a hand-over that
 * never arrived is made again.
 */
function gotNoVerdict({ metadata: { effect, result } }: IncidentEvent<'tool_finished'>): boolean {
  const details = result.error?.details
  if (!details) return false
  return (effect === 'terminal' && details.rule === 'UNANSWERED') || saysNotYet(details.status, details.rule)
}

/** A look without health (a file, a process) leaves the last one, unless a write began since. */
function look(state: SafetyState, key: string, seq: number, atMs: number, told: string | null): void {
  const known = state.looks.get(key)
  const lastWriteSeq = state.writes.at(-1)?.startedSeq ?? 0
  const health = told ?? (known && known.seq > lastWriteSeq ? known.health : null)
  state.lookedAt.add(key)
  state.looks.set(key, { seq, atMs, health })
}

/** `unproven` closes a write like `held` and `not_held`: there is nothing more to wait for. */
function verify(state: SafetyState, event: IncidentEvent<'verification'>): void {
  const { callId, outcome } = event.metadata
  if (outcome === 'open') return
  cite(state, event)
  for (const write of state.writes) {
    if (write.callId === callId) Object.assign(write, { verified: outcome, verifiedSeq: event.seq })
  }
  if (state.open?.callId === callId) state.open = null
}
