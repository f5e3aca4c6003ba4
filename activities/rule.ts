import { append, StaleRunError } from '../db/append.ts'
import { consumeApproval } from '../db/approvals/settle.ts'
import { databaseTime, type Trx } from '../db/connect.ts'
import { eventsOf } from '../db/events.ts'
import { takeUse } from '../db/grants.ts'
import { lockIncident, setWaiting, toIncident } from '../db/incidents.ts'
import { takeLeases } from '../db/leases.ts'
import { readPolicy } from '../db/policy.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from '../db/settings.ts'
import { actionOf, agentActor, type IncidentEvent, type JudgedBasis, type ProposedCall } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { editedByPerson, refusalOf } from '../domain/refusal.ts'
import { type CallPlace, callId, stepKey } from '../domain/step-key.ts'
import { requiredApprovals } from '../domain/tool.ts'
import { restsOnBodies } from '../safety/ending.ts'
import { fold, type State } from '../safety/fold.ts'
import { type Call, judge, type Policy, policyVersion, type Ruling } from '../safety/judge.ts'
import { loopLimit } from '../safety/ruling.ts'
import { toolFacts } from '../tools/registry.ts'
import type { Act } from '../workflows/outcome.ts'
import { askPeople, decidedElsewhere, expirySecondsOf, findPending, joinApproval, knownAnswer } from './approvals.ts'
import { RetryLater } from './failure.ts'
import { bodiesOfEnding, recordHint } from './reason.ts'

export type Ruled = Exclude<Act, { kind: 'verify' }> | Run

/** `again`: another try of this activity has started the call already, and may have sent it. */
type Run = { kind: 'run'; started: IncidentEvent<'tool_started'>; again: boolean }

/** A place in the log, and the approval that the run waited for, where it did. */
type RuledPlace = CallPlace & { approvalId: string | null }

/** A proposed call, with what a person made of it where one did. */
export type EffectiveCall = ProposedCall & {
  edit: { operatorId: string; name: string; from: Record<string, unknown> | null } | null
}

/**
 * Judges a call and writes the ruling with what follows from it, in the caller's transaction: the refusal, the question, or
 * `tool_started` with its leases and the approval it uses up. After the commit exactly one caller may send: a try that was slower than
 * another one finds what that one started, and judges nothing.
 */
export async function rule(
  deps: { environment: EnvironmentDefaults },
  trx: Trx,
  place: RuledPlace,
  call: EffectiveCall,
  prepared: Call['prepared'],
): Promise<Ruled> {
  const incident = await lockIncident(trx, place.incidentId)
  if (!incident || incident.attempt !== place.attempt)
    throw new StaleRunError(place.incidentId, place.attempt, incident?.attempt ?? 0)
  if (incident.status !== 'investigating' && incident.status !== 'awaiting_approval') return { kind: 'closed' }

  const events = await eventsOf(trx, place.incidentId)
  const startKey = stepKey(place, place.turn, 'tool_started', place.call)
  const started = events.find((event) => event.stepKey === startKey)
  if (started?.kind === 'tool_started') return { kind: 'run', started, again: true }
  const earlier = rulingsOf(events, place.attempt, callId(place.turn, place.call))
  const known = await knownAnswer(trx, earlier.at(-1))
  if (known) return known

  const settings = await readSettings(trx, deps.environment)
  const judged = await judgeCall(trx, {
    place,
    call,
    prepared,
    incident: toIncident(incident),
    events,
    earlier,
    settings,
  })
  const { ruling, policy } = judged
  if (ruling.code === 'NOT_QUIET_YET') return await keepEnding(trx, place, ruling)
  const joined = ruling.verdict === 'ask' ? await findPending(trx, place.incidentId, call.tool, ruling) : null
  // The first ruling of a call has no step in its key; each later one has its number.
  const step = earlier.length === 0 ? undefined : earlier.length
  await recordRuling(trx, place, call, { ...judged, step, approvalId: policy.approval?.id ?? joined })
  if (ruling.verdict === 'refuse' || ruling.arguments === null) {
    await setWaiting(trx, place.incidentId, false)
    const isLooping = refusalOf(ruling.code).loop === true && judged.state.loops + 1 >= loopLimit
    return { kind: isLooping ? 'looping' : 'next' }
  }
  if (ruling.verdict === 'run')
    return await start(trx, place, { call, ...judged, events, approvalId: policy.approval?.id ?? null })
  if (joined) return await joinApproval(trx, place.incidentId, joined)
  const expirySeconds = expirySecondsOf(settings, call.tool)
  const required = Math.max(requiredApprovals[ruling.risk], policy.raised.required)
  return await askPeople(trx, place, { call, ruling, prepared, expirySeconds, required, step })
}

type Unjudged = {
  place: RuledPlace
  call: EffectiveCall
  prepared: Call['prepared']
  incident: Incident
  events: IncidentEvent[]
  /** What was ruled about this very call before. */
  earlier: readonly IncidentEvent<'call_judged'>[]
  settings: SettingsReader
}

type Judged = { ruling: Ruling; policy: Policy; state: State; basis: JudgedBasis }

/** The judge's ruling on what the rows, the settings and the clock say now. */
async function judgeCall(trx: Trx, unjudged: Unjudged): Promise<Judged> {
  const { place, call, prepared, incident, events, earlier, settings } = unjudged
  const state = fold(events, place.attempt, incident.resource)
  const isEnding = toolFacts.get(call.tool)?.effect === 'terminal'
  const targets = prepared?.ok ? prepared.preparation.targets : []
  const policy = await readPolicy(trx, incident, settings, {
    facts: toolFacts.get(call.tool) ?? { name: call.tool, names: {} },
    targets,
    approvalId: place.approvalId,
    isEnding,
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

async function recordRuling(
  trx: Trx,
  place: RuledPlace,
  call: EffectiveCall,
  { ruling, state, basis, step, approvalId }: Judged & { step: number | undefined; approvalId: string | null },
): Promise<void> {
  const { verdict, code, reason, hint, details, phase, effect, risk, targets, actionDigest } = ruling
  await append(trx, place.incidentId, place.attempt, {
    kind: 'call_judged',
    actor: agentActor,
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
      approvalId,
    },
  })
}

const shortestWaitMs = 250

/** An ending that comes too early stands: the run waits, and judges it again when the alerts were quiet for long enough. */
async function keepEnding(trx: Trx, place: CallPlace, ruling: Ruling): Promise<Ruled> {
  const text = `The ending is kept: ${ruling.reason}`
  await append(trx, place.incidentId, place.attempt, {
    kind: 'noted',
    actor: agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'noted', place.call),
    detail: text,
    metadata: { code: 'ending_kept', text },
  })
  return { kind: 'wait', waitMs: Math.max(shortestWaitMs, Number(ruling.details.waitSeconds ?? 1) * 1000) }
}

function rulingsOf(events: readonly IncidentEvent[], attempt: number, id: string): IncidentEvent<'call_judged'>[] {
  return events.filter(
    (event) => event.kind === 'call_judged' && event.attempt === attempt && event.metadata.callId === id,
  ) as IncidentEvent<'call_judged'>[]
}

/** The model reads that a person changed the call, like any correction: the answer is not to what it had asked. */
function editsOf({ edit, arguments: to }: EffectiveCall) {
  return edit ? [{ code: editedByPerson, field: '*', from: edit.from, to }] : []
}

/** Enough to judge the same call again later. The texts of a dry run are left out: no rule reads them. */
function basisOf(at: string, policy: Policy, prepared: Call['prepared']): JudgedBasis {
  if (!prepared?.ok) return { at, policy: { ...policy }, prepared }
  const { dryRun: _, ...rest } = prepared.preparation
  return { at, policy: { ...policy }, prepared: { ok: true, ...rest } }
}

type Starting = {
  call: EffectiveCall
  ruling: Ruling
  state: State
  events: readonly IncidentEvent[]
  approvalId: string | null
}

/** From here on the call may reach the world: a later run that finds `tool_started` asks what became of it. */
async function start(
  trx: Trx,
  place: CallPlace,
  { call, ruling, state, events, approvalId }: Starting,
): Promise<Ruled> {
  const id = callId(place.turn, place.call)
  if (ruling.effect === 'write') {
    const holder = { incidentId: place.incidentId, attempt: place.attempt, callId: id }
    // Lost to a rival between judging and taking: the next try is judged with the rival in sight.
    if (!(await takeLeases(trx, holder, ruling.targets))) throw new RetryLater('TARGET_TAKEN')
  }
  // Past its use-by since it was judged: the next try is judged without it, and asks again.
  if (approvalId !== null && !(await consumeApproval(trx, approvalId))) throw new RetryLater('APPROVAL_LATE')
  const grantId = ruling.code === 'GRANTED' ? String(ruling.details.grant) : null
  if (grantId !== null) {
    const key = stepKey(place, place.turn, 'grant_used', place.call)
    if (!(await takeUse(trx, place, grantId, key))) throw new RetryLater('GRANT_USED_UP')
  }
  await setWaiting(trx, place.incidentId, false)
  if (ruling.effect === 'terminal' && state.hintFrom !== null) await recordHint(trx, place, state, events)
  const { event } = await append(trx, place.incidentId, place.attempt, {
    kind: 'tool_started',
    actor: agentActor,
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
