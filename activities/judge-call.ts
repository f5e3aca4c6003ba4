import { approvalState, type PendingElsewhere } from '../db/approvals/find.ts'
import { databaseTime } from '../db/clock.ts'
import type { Trx } from '../db/connect.ts'
import { append } from '../db/log/append.ts'
import { readPolicy } from '../db/policy.ts'
import type { SettingsReader } from '../db/settings.ts'
import { agentActor, type IncidentEvent, type JudgedBasis, type ProposedCall } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { findManualChange } from '../domain/manual-change.ts'
import { editedByPerson } from '../domain/refusal.ts'
import { type CallRef, callId, stepKey } from '../domain/step-key.ts'
import { fold, type SafetyState } from '../safety/fold.ts'
import { type Call, judge, type Policy, policyVersion, type Ruling } from '../safety/judge.ts'
import { restsOnBodies } from '../safety/ruling.ts'
import { toolFacts } from '../tools/registry.ts'
import { bodiesOfEnding } from './reason.ts'

/** A proposed call, with a person's change if there is one. */
export type EffectiveCall = ProposedCall & {
  edit: { operatorId: string; name: string; from: Record<string, unknown> | null } | null
}

/** A place in the log, and the approval for which the run waited, if any. */
export type RuledPlace = CallRef & {
  approvalId: string | null
  /** The name on the call's rows, set if a person proposed the call. */
  actor?: string
}

export type CallToRule = {
  place: RuledPlace
  call: EffectiveCall
  prepared: Call['prepared']
  incident: Incident
  events: IncidentEvent[]
  /** Earlier rulings on this call. */
  earlier: readonly IncidentEvent<'call_judged'>[]
  settings: SettingsReader
}

type RuledCall = { ruling: Ruling; policy: Policy; state: SafetyState; basis: JudgedBasis }

/** Judges a call by the current rows, settings and clock. */
export async function judgeCall(trx: Trx, unjudged: CallToRule): Promise<RuledCall> {
  const { place, call, prepared, incident, events, earlier, settings } = unjudged
  const state = fold(events, place.attempt, incident.resource)
  const manual = findManualChange(events, place.attempt)
  const isEnding = toolFacts.get(call.tool)?.effect === 'terminal'
  const targets = prepared?.ok ? prepared.preparation.targets : []
  const policy = await readPolicy(trx, incident, settings, {
    facts: toolFacts.get(call.tool) ?? { name: call.tool, names: {} },
    targets,
    approvalId: place.approvalId,
    isEnding,
    manual,
  })
  const at = await databaseTime(trx)
  const ground = restsOnBodies(toolFacts.get(call.tool)?.effect, call.arguments)
    ? { bodies: await bodiesOfEnding(trx, events, place.attempt) }
    : {}
  const id = callId(place.turn, place.call)
  const judgement = judge({ ...call, callId: id, prepared, ...ground }, toolFacts, state, policy, Date.parse(at))
  const elsewhere = await decidedElsewhere(trx, earlier.at(-1))
  const ruling: Ruling = elsewhere ? { ...judgement, ...elsewhere } : judgement
  return { ruling, policy, state, basis: basisOf(at, policy, prepared) }
}

type Recording = {
  step: number | undefined
  approvalId: string | null
  prepared?: Call['prepared']
  joins?: PendingElsewhere | null
}

export async function recordRuling(
  trx: Trx,
  place: RuledPlace,
  call: EffectiveCall,
  { ruling, state, basis, step, approvalId, prepared = null, joins = null }: RuledCall & Recording,
): Promise<void> {
  const { verdict, code, reason, hint, details, phase, effect, risk, targets, actionDigest } = ruling
  await append(trx, place.incidentId, place.attempt, {
    kind: 'call_judged',
    actor: place.actor ?? agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'call_judged', place.call, step),
    detail: `${verdict}: ${toolFacts.has(call.tool) ? call.tool : 'an unknown tool'} (${code}) ${reason}`,
    metadata: {
      callId: callId(place.turn, place.call),
      tool: call.tool,
      arguments: call.arguments,
      verdict,
      code,
      reason,
      hint,
      details,
      phase,
      corrected: [...editsOf(call), ...ruling.corrected],
      effect,
      risk,
      targets,
      actionDigest,
      policyVersion,
      foldedSeq: state.lastSeq,
      basis,
      approvalId: approvalId ?? joins?.id ?? null,
      ...(joins && { joins: joins.incidentId }),
      ...(code === 'SHADOW' && prepared?.ok && { shadow: prepared.preparation.dryRun.summary }),
    },
  })
}

/** Lists rulings on one call of an attempt, oldest first. */
export function rulingsOf(
  events: readonly IncidentEvent[],
  attempt: number,
  id: string,
): IncidentEvent<'call_judged'>[] {
  return events.filter(
    (event) => event.kind === 'call_judged' && event.attempt === attempt && event.metadata.callId === id,
  ) as IncidentEvent<'call_judged'>[]
}

/**
 * Tells the model, as a correction, that a person changed the call, because the result then belongs
 * to another call than the model made.
 */
function editsOf({ edit, arguments: to }: EffectiveCall) {
  return edit ? [{ code: editedByPerson, field: '*', from: edit.from, to }] : []
}

/**
 * Returns the inputs of a ruling for storage, without the texts of a dry run, which no rule reads.
 */
function basisOf(at: string, policy: Policy, prepared: Call['prepared']): JudgedBasis {
  if (!prepared?.ok) return { at, policy: { ...policy }, prepared }
  const { dryRun: _, ...rest } = prepared.preparation
  return { at, policy: { ...policy }, prepared: { ok: true, ...rest } }
}

/**
 * Returns the refusal of a call that joined another incident's approval, if that approval was
 * already decided there, so that people are not asked again. Null if it is not decided.
 */
async function decidedElsewhere(
  trx: Trx,
  last: IncidentEvent<'call_judged'> | undefined,
): Promise<Pick<Ruling, 'verdict' | 'code' | 'reason' | 'hint'> | null> {
  if (last?.metadata.verdict !== 'ask' || last.metadata.approvalId === null) return null
  const approval = await approvalState(trx, last.metadata.approvalId)
  if (!approval || approval.incidentId === last.incidentId || approval.status === 'pending') return null
  return {
    verdict: 'refuse',
    code: 'DECIDED_ELSEWHERE',
    reason: `the same action was requested in ${approval.incidentId} and is ${approval.status}`,
    hint: 'Look at the targets again: the action may be done already.',
  }
}
