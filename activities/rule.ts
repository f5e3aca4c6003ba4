import { useGrant } from '../db/approvals/grants.ts'
import { consumeApproval } from '../db/approvals/settle.ts'
import type { Trx } from '../db/connect.ts'
import { lockIncident, setWaiting, toIncident } from '../db/incidents/incidents.ts'
import { takeOverQuestions } from '../db/incidents/manual-change.ts'
import { actionOf, append, StaleRunError } from '../db/log/append.ts'
import { eventsOf } from '../db/log/events.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { takeLeases } from '../db/writes/leases.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { findManualChange, type ManualChange } from '../domain/manual-change.ts'
import { type CallRef, callId, stepKey } from '../domain/step-key.ts'
import type { SafetyState } from '../safety/fold.ts'
import type { Call, Ruling } from '../safety/judge.ts'
import { isLoopEnd } from '../safety/ruling.ts'
import type { CallOutcome } from '../workflows/outcome.ts'
import {
  askPeople,
  askTogether,
  earlierDecision,
  findPending,
  joinApproval,
  type LaterCall,
  listLaterCalls,
} from './ask-people.ts'
import { RetryLater } from './failures.ts'
import { type EffectiveCall, judgeCall, type RuledPlace, recordRuling, rulingsOf } from './judge-call.ts'
import { recordHint } from './reason.ts'

type RuleOutcome = Exclude<CallOutcome, { kind: 'verify' }> | StartedCall

/** `again`: another attempt of this activity has already started the call, and may have sent it. */
type StartedCall = { kind: 'run'; started: IncidentEvent<'tool_started'>; again: boolean }

/**
 * Later calls of the answer that may share the approval card; they are prepared before people are
 * asked.
 */
type ToPrepare = { kind: 'prepare'; calls: number[] }

/**
 * `later`: later calls that are prepared too; null until an approval is needed and they have been
 * prepared.
 */
type Proposed = { call: EffectiveCall; prepared: Call['prepared']; later: readonly LaterCall[] | null }

/**
 * Judges a call and writes the ruling with its consequence in the caller's transaction: the
 * refusal, the request for approval, or `tool_started` with its leases and the used approval. After
 * the commit, exactly one caller may send the call. A slower attempt of this activity finds the
 * started call, and judges nothing.
 */
export async function rule(
  deps: { environment: EnvironmentDefaults },
  trx: Trx,
  asked: RuledPlace,
  { call, prepared, later }: Proposed,
): Promise<RuleOutcome | ToPrepare> {
  const incident = await lockIncident(trx, asked.incidentId)
  if (!incident || incident.attempt !== asked.attempt)
    throw new StaleRunError(asked.incidentId, asked.attempt, incident?.attempt ?? 0)
  if (incident.status !== 'investigating' && incident.status !== 'awaiting_approval') return { kind: 'closed' }

  const events = await eventsOf(trx, asked.incidentId)
  const manual = findManualChange(events, asked.attempt)
  const place = manual ? { ...asked, actor: manual.actor } : asked
  const startKey = stepKey(place, place.turn, 'tool_started', place.call)
  const started = events.find((event) => event.stepKey === startKey)
  if (started?.kind === 'tool_started') return { kind: 'run', started, again: true }
  const earlier = rulingsOf(events, place.attempt, callId(place.turn, place.call))
  const last = earlier.at(-1)
  const known = last ? await earlierDecision(trx, place, events, last) : null
  if (known) return known

  const settings = await readSettings(trx, deps.environment)
  const around = { incident: toIncident(incident), settings }
  const judged = await judgeCall(trx, { place, call, prepared, events, earlier, ...around })
  const { ruling, policy } = judged
  if (ruling.code === 'NOT_QUIET_YET') return await deferEnding(trx, place, ruling)
  // Requests a separate approval for a person's own write. The approval counts that person's vote,
  // and allows no other incident's run to do the write.
  const joins = ruling.verdict === 'ask' && !manual ? await findPending(trx, place.incidentId, call.tool, ruling) : null
  const isAsked = ruling.verdict === 'ask' && ruling.arguments !== null && joins === null
  const calls = isAsked && later === null ? listLaterCalls(events, place) : []
  if (calls.length > 0) return { kind: 'prepare', calls }
  // The number of the ruling, as part of its key. The key of a call's first ruling has no number.
  const step = earlier.length === 0 ? undefined : earlier.length
  await recordRuling(trx, place, call, { ...judged, step, joins, prepared, approvalId: policy.approval?.id ?? null })
  if (ruling.verdict === 'refuse' || ruling.arguments === null) {
    await setWaiting(trx, place.incidentId, false)
    return { kind: isLoopEnd(judged.state, ruling, place.turn) ? 'looping' : 'next' }
  }
  if (ruling.verdict === 'run')
    return await start(trx, place, { call, ...judged, events, approvalId: policy.approval?.id ?? null, manual })
  if (joins) return await joinApproval(trx, place.incidentId, joins.id)
  const isAnnounced = !later?.length
  const question = await askPeople(trx, place, { call, ruling, prepared, policy, settings, step, isAnnounced, manual })
  if (later?.length) await askTogether(trx, { approvalId: question.approvalId, ruling }, later, around)
  return question
}

const minWaitMs = 250

/**
 * Postpones an ending that comes too early. The run waits, and judges the ending again when the
 * alerts have been quiet.
 */
async function deferEnding(trx: Trx, place: CallRef, ruling: Ruling): Promise<RuleOutcome> {
  const text = `The ending is kept and retried: ${ruling.reason}`
  await append(trx, place.incidentId, place.attempt, {
    kind: 'noted',
    actor: agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'noted', place.call),
    detail: text,
    metadata: { code: 'ending_kept', text },
  })
  return { kind: 'wait', waitMs: Math.max(minWaitMs, Number(ruling.details.waitSeconds ?? 1) * 1000) }
}

type Starting = {
  call: EffectiveCall
  ruling: Ruling
  state: SafetyState
  events: readonly IncidentEvent[]
  approvalId: string | null
  manual: ManualChange | null
}

/**
 * Starts a call. From here on the call may reach the platform: a later run that finds
 * `tool_started` reads its outcome.
 */
async function start(
  trx: Trx,
  place: RuledPlace,
  { call, ruling, state, events, approvalId, manual }: Starting,
): Promise<RuleOutcome> {
  const id = callId(place.turn, place.call)
  if (ruling.effect === 'write') {
    const holder = { incidentId: place.incidentId, attempt: place.attempt, callId: id }
    // Retries if another run took the lease meanwhile. The next attempt is judged by that lease.
    if (!(await takeLeases(trx, holder, ruling.targets))) throw new RetryLater('TARGET_TAKEN')
  }
  // Retries if the approval has expired. The next attempt is judged without this approval, and
  // requests a new one.
  if (approvalId !== null && !(await consumeApproval(trx, approvalId))) throw new RetryLater('APPROVAL_LATE')
  const grantId = ruling.code === 'GRANTED' ? String(ruling.details.grant) : null
  if (grantId !== null) {
    const key = stepKey(place, place.turn, 'grant_used', place.call)
    if (!(await useGrant(trx, place, grantId, key))) throw new RetryLater('GRANT_USED_UP')
  }
  if (manual) await takeOverQuestions(trx, place.incidentId, manual)
  await setWaiting(trx, place.incidentId, false)
  if (ruling.effect === 'terminal' && state.hintFrom !== null) await recordHint(trx, place, state, events)
  const { event } = await append(trx, place.incidentId, place.attempt, {
    kind: 'tool_started',
    actor: place.actor ?? agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'tool_started', place.call),
    action: actionOf('tool_started', { effect: ruling.effect }),
    detail: `Calling tool: ${call.tool}`,
    metadata: {
      callId: id,
      tool: call.tool,
      arguments: ruling.arguments ?? {},
      effect: ruling.effect,
      risk: ruling.risk,
      targets: ruling.targets,
      actionDigest: ruling.actionDigest,
      approvalId,
    },
  })
  return { kind: 'run', started: event, again: false }
}
