import type { EventKind, EventMetadata, IncidentEvent, JudgedBasis, ProposedCall } from '../../../domain/event.ts'
import { findHypothesis, foldHypotheses } from '../../../domain/hypothesis.ts'
import { editedByPerson, type Policy, plainPolicy } from '../../../domain/refusal.ts'
import { callId, isCallOfCode, parseCallId } from '../../../domain/step-key.ts'
import { fold, type SafetyState } from '../../../safety/fold.ts'
import { type Call, judge, policyVersion, type Ruling } from '../../../safety/judge.ts'
import { policyOf } from '../../../safety/replay.ts'
import { resolveArguments } from '../../../safety/resolve-arguments.ts'
import { isLoopEnd, restsOnBodies } from '../../../safety/ruling.ts'
import { moreTools, toolFacts } from '../../../tools/registry.ts'
import type { LoopPorts } from '../../../workflows/loop.ts'
import { addRow, nowOf, type Play, passWorld } from './rows.ts'
import { findLogged, keyOfCall, type LoggedCall, stateKey } from './world.ts'

type CallOutcome = Awaited<ReturnType<LoopPorts['act']>>

/**
 * Handles one call of a trial run: judges it as in an investigation, and takes the result from the
 * log.
 */
export async function actOnce(play: Play, turn: number, call: ProposedCall): Promise<CallOutcome> {
  const facts = toolFacts.get(call.tool)
  const isEnding = facts?.effect === 'terminal'
  // Adds the alerts and messages up to the log's ending, by which the judge decides on an ending.
  if (isEnding) passWorld(play, play.recording.ending.seq)
  const state = fold(play.rows, play.recording.attempt, play.recording.incident.resource)
  const proposed = keyOfCall(call.tool, call.arguments)
  const guess = proposed === null ? null : findInState(play, [proposed])
  const ruling = judgeInPlay(play, state, call, guess)
  if (ruling.code === 'NOT_QUIET_YET') return endPlay(play, call)
  recordRuling(play, turn, call, ruling, guess)
  if (ruling.verdict === 'refuse' || ruling.arguments === null)
    return { kind: isLoopEnd(state, ruling, turn) ? 'looping' : 'next' }
  if (isEnding) return endPlay(play, { ...call, arguments: ruling.arguments })
  if (ruling.effect === 'record' && call.tool !== 'read_runbook') return await record(play, turn, call, ruling)
  const settled = keyOfCall(call.tool, ruling.arguments)
  const keys = [proposed, settled, ruling.actionDigest].flatMap((key) => key ?? [])
  const logged = guess ?? findInState(play, keys)
  const isWrite = ruling.effect === 'write'
  if (isWrite || logged?.isWrite) play.proposed.set(placeOf(play, logged?.key ?? ruling.actionDigest), inWords(call))
  if (!logged) {
    const word = `would write ${inWords(call)}`
    play.end = isWrite
      ? { kind: 'would_write', word }
      : { kind: 'not_comparable', why: `the log does not contain ${inWords(call)}` }
    return { kind: 'closed' }
  }
  return answerAsLogged(play, turn, call, logged)
}

function inWords({ tool, arguments: given }: Pick<ProposedCall, 'tool' | 'arguments'>): string {
  const { reason: _, ...said } = given ?? {}
  return `${tool} ${JSON.stringify(said)}`.slice(0, 300).toWellFormed()
}

/**
 * Finds the call in the log that has one of these keys, in the current state. A call that is made
 * again gets the next result in the log.
 */
function findInState(play: Play, keys: readonly string[]): LoggedCall | null {
  const state = stateKey(play.made)
  const first = findLogged(play.calls, keys, state, 0)
  return first && findLogged(play.calls, keys, state, play.asked.get(placeOf(play, first.key)) ?? 0)
}

function judgeInPlay(play: Play, state: SafetyState, call: ProposedCall, logged: LoggedCall | null): Ruling {
  const basis = logged?.rows.findLast((row) => row.kind === 'call_judged')?.metadata.basis ?? null
  const prepared = basis?.prepared ?? null
  const dryRun = { possible: true, summary: '', details: {} }
  const asLogged = prepared?.ok ? { ok: true as const, preparation: { ...prepared, dryRun } } : prepared
  const judged: Call = {
    ...call,
    callId: call.id,
    prepared: logged ? asLogged : suppose(play, state, call),
    ...(restsOnBodies(toolFacts.get(call.tool)?.effect, call.arguments) && { bodies: play.recording.texts }),
  }
  return judge(judged, toolFacts, state, policyFor(play, call.tool, state), Date.parse(nowOf(play)))
}

/**
 * Returns a preparation for a call that is not in the log. Its targets come from the arguments, and
 * its effect is unknown.
 */
function suppose(play: Play, state: SafetyState, { tool, arguments: given }: ProposedCall): Call['prepared'] {
  const facts = toolFacts.get(tool)
  const parsed = facts?.input.safeParse(given)
  if (!facts || !parsed?.success) return null
  const { targets, arguments: identity } = resolveArguments(
    facts,
    parsed.data as Record<string, unknown>,
    state,
    Date.parse(nowOf(play)),
  )
  const dryRun = { possible: false, summary: '', details: {} }
  return { ok: true, preparation: { targets, identity, stateFingerprint: '', dryRun } }
}

/**
 * Returns the site's permissions from the newest policy decision that the trial run has passed.
 * Prefers decisions about the tool.
 */
function policyFor(play: Play, tool: string, state: SafetyState): Policy {
  const { events, attempt, incident } = play.recording
  const judged = events.filter(
    (row): row is IncidentEvent<'call_judged'> & { metadata: { basis: JudgedBasis } } =>
      row.kind === 'call_judged' && row.attempt === attempt && row.metadata.basis !== undefined,
  )
  const isPassed = ({ seq }: IncidentEvent) => seq <= play.passedSeq
  const newest = judged.findLast(isPassed) ?? judged[0]
  const ofTool = judged.filter(({ metadata }) => metadata.tool === tool)
  const own = ofTool.findLast(isPassed) ?? ofTool[0]
  const from = own ?? newest
  const plain = plainPolicy(incident.id, incident.resource)
  const policy: Policy = { ...plain, ...(from && policyOf(from.metadata.basis)), approval: null }
  const { deniedActions: _, keys: _keys, manual: _manual, alerts: _alerts, ...rest } = policy
  const general = own ? rest : { ...rest, raised: plain.raised, busy: [], grants: [] }
  if (toolFacts.get(tool)?.effect !== 'terminal') return general
  return { ...general, alerts: alertsAtEnd(judged, state, play.rows) }
}

/** Returns the alerts that an ending in the log used, or else the alerts in the rows so far. */
function alertsAtEnd(
  judged: readonly IncidentEvent<'call_judged'>[],
  state: SafetyState,
  rows: readonly IncidentEvent[],
): NonNullable<Policy['alerts']> {
  const weighed = judged.findLast(({ metadata }) => toolFacts.get(metadata.tool)?.effect === 'terminal')
  const known = weighed?.metadata.basis?.policy.alerts as Policy['alerts']
  if (known) return known
  const heard = new Set(rows.flatMap((row) => (row.kind === 'alert_received' ? [row.metadata.fingerprint] : [])))
  const firing = state.firing.size
  return {
    total: heard.size,
    firing,
    unknown: 0,
    endless: 0,
    endedForSeconds: firing > 0 ? null : Number.MAX_SAFE_INTEGER,
    quietSeconds: 0,
  }
}

function recordRuling(play: Play, turn: number, call: ProposedCall, ruling: Ruling, logged: LoggedCall | null): void {
  const judged = logged?.rows.flatMap((row) => (row.kind === 'call_judged' ? (row.metadata.corrected ?? []) : [])) ?? []
  const edits = judged.filter(({ code }) => code === editedByPerson)
  const { corrected, arguments: _, ...rest } = ruling
  addRow(play, {
    kind: 'call_judged',
    turn,
    metadata: {
      ...rest,
      callId: call.id,
      tool: call.tool,
      arguments: call.arguments,
      corrected: [...edits, ...corrected],
      policyVersion,
      foldedSeq: play.rows.at(-1)?.seq ?? 0,
      approvalId: null,
    },
  })
}

/** Records a note of the tried model as the core API would, because the log cannot contain it. */
async function record(play: Play, turn: number, call: ProposedCall, ruling: Ruling): Promise<CallOutcome> {
  const given = ruling.arguments ?? {}
  const { attempt } = play.recording
  if (call.tool === 'add_incident_event') {
    const known = foldHypotheses(play.rows, attempt)
    const text = String(given.detail)
    const meant = findHypothesis(known, { id: undefined, text })
    const state = given.hypothesis as 'proposed' | 'supported' | 'refuted' | undefined
    const quotes = (given.quotes ?? []) as { seq: number; text: string }[]
    const hypothesis = state && { id: meant?.id ?? `h${known.length + 1}`, text: meant?.text ?? text, state, quotes }
    const metadata = { text, confidence: null, action: String(given.action), ...(hypothesis && { hypothesis }) }
    addRow(play, { kind: 'commented', turn, metadata })
  }
  const data = call.tool === moreTools.name ? await addTools(given) : { recorded: true }
  finish(play, turn, call, ruling, data)
  return { kind: 'next' }
}

async function addTools(given: Record<string, unknown>): Promise<unknown> {
  // Runs `more_tools`, which only looks up names in the registry.
  const answer = await moreTools.run(given as never, {} as never)
  return answer.ok ? answer.data : {}
}

function finish(play: Play, turn: number, call: ProposedCall, ruling: Ruling, data: unknown): void {
  const { effect, targets, arguments: given } = ruling
  const metadata: EventMetadata['tool_finished'] = {
    callId: call.id,
    tool: call.tool,
    arguments: given ?? {},
    effect,
    targets,
    outcome: 'done',
    result: { ok: true, data, meta: {} },
    body: null,
    discovered: [],
    durationMs: 0,
  }
  addRow(play, { kind: 'tool_finished', turn, metadata })
}

const copied = new Set<EventKind>(['tool_started', 'tool_finished', 'verification', 'approval_decided'])

/**
 * Returns a key for a call in the current state. The same write in another state is another
 * proposal.
 */
const placeOf = ({ made }: Play, key: string): string => `${stateKey(made)}:${key}`

/**
 * Copies the log's rows about a call into the trial run, with new numbers. Copies them again each
 * time the call is made.
 */
function answerAsLogged(play: Play, turn: number, call: ProposedCall, logged: LoggedCall): CallOutcome {
  const at = placeOf(play, logged.key)
  play.asked.set(at, (play.asked.get(at) ?? 0) + 1)
  if (logged.fate === 'expired') {
    play.end = { kind: 'ended', word: 'escalated APPROVAL_EXPIRED' }
    return { kind: 'closed' }
  }
  const numbers = new Map<number, number>()
  for (const row of logged.rows) {
    if (!copied.has(row.kind)) continue
    const writeSeq = row.kind === 'verification' ? { writeSeq: numbers.get(row.metadata.writeSeq) ?? 0 } : {}
    const added = addRow(play, {
      kind: row.kind,
      turn,
      at: row.at,
      actor: row.actor,
      metadata: { ...row.metadata, callId: call.id, ...writeSeq },
    } as Parameters<typeof addRow>[1])
    numbers.set(row.seq, added.seq)
  }
  if (logged.isWrite && logged.fate === 'done') {
    play.made.add(logged.key)
    addLooksOfCode(play, turn, call, logged)
  }
  passWorld(play, logged.rows.at(-1)?.seq ?? 0)
  return { kind: 'next' }
}

/** Adds the reads that code made after this write in the log, once per attempt. */
function addLooksOfCode(play: Play, turn: number, call: ProposedCall, logged: LoggedCall): void {
  const answer = play.rows.findLast((row) => row.kind === 'model_answered')
  const isLast = answer?.metadata.calls.at(-1)?.id === call.id
  const placeIn = (row: IncidentEvent) =>
    'callId' in row.metadata && isCallOfCode(String(row.metadata.callId)) && row.turn !== 0
      ? (parseCallId(String(row.metadata.callId))?.call ?? null)
      : null
  if (!isLast || play.rows.some((row) => placeIn(row) !== null)) return
  const { events, attempt } = play.recording
  for (const row of events) {
    const place = placeIn(row)
    if (place === null || row.attempt !== attempt || row.turn !== logged.rows[0]?.turn) continue
    const { kind, at, actor } = row
    const metadata = { ...row.metadata, callId: callId(turn, place) }
    addRow(play, { kind, turn, at, actor, metadata } as Parameters<typeof addRow>[1])
  }
}

function endPlay(play: Play, call: ProposedCall): CallOutcome {
  play.end = { kind: 'ended', word: wordOfEnding(call) }
  return { kind: 'closed' }
}

/** Formats an ending in two words: `resolved repaired`, `escalated none`. */
export function wordOfEnding({ tool, arguments: given }: Pick<ProposedCall, 'tool' | 'arguments'>): string {
  return tool === 'resolve_incident' ? `resolved ${given?.outcome}` : `escalated ${given?.category ?? 'none'}`
}
