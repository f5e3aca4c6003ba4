import { append, StaleRunError } from '../db/append.ts'
import { requestApproval } from '../db/approvals/ask.ts'
import { voteOfEditor } from '../db/approvals/decide.ts'
import { approvalOfCall, approvalState, pendingOfAction } from '../db/approvals/find.ts'
import { consumeApproval, withdrawPending } from '../db/approvals/settle.ts'
import type { Trx } from '../db/connect.ts'
import { eventsOf } from '../db/events.ts'
import { takeUse } from '../db/grants.ts'
import { lockIncident, setWaiting, toIncident } from '../db/incidents.ts'
import { takeLeases } from '../db/leases.ts'
import { readPolicy } from '../db/policy.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { databaseTime } from '../db/time.ts'
import { actionOf, agentActor, type IncidentEvent, type JudgedBasis, type ProposedCall } from '../domain/event.ts'
import { editedByPerson, refusalOf } from '../domain/refusal.ts'
import { type CallPlace, callId, stepKey } from '../domain/step-key.ts'
import { type Preparation, requiredApprovals } from '../domain/tool.ts'
import { fold, type State } from '../safety/fold.ts'
import { type Call, judge, type Policy, policyVersion, type Ruling } from '../safety/judge.ts'
import { loopLimit } from '../safety/loop.ts'
import { toolFacts, tools } from '../tools/registry.ts'
import type { Act } from '../workflows/outcome.ts'
import { expirySecondsOf } from './approval-expiry.ts'
import { bodiesOfEnding } from './bodies-of-ending.ts'
import { GiveUp, RetryLater } from './failure.ts'
import { recordHint } from './hint.ts'

type Ruled = Exclude<Act, { kind: 'verify' }> | Run

/** `again`: another try of this activity has started the call already, and may have sent it. */
type Run = { kind: 'run'; started: IncidentEvent<'tool_started'>; again: boolean }

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
  place: CallPlace & { approvalId: string | null },
  call: EffectiveCall,
  prepared: Call['prepared'],
): Promise<Ruled> {
  const row = await lockIncident(trx, place.incidentId)
  if (!row || row.attempt !== place.attempt) throw new StaleRunError(place.incidentId, place.attempt, row?.attempt ?? 0)
  if (row.status !== 'investigating' && row.status !== 'awaiting_approval') return { kind: 'closed' }

  const events = await eventsOf(trx, place.incidentId)
  const id = callId(place.turn, place.call)
  const startKey = stepKey(place, place.turn, 'tool_started', place.call)
  const started = events.find((event) => event.stepKey === startKey)
  if (started?.kind === 'tool_started') return { kind: 'run', started, again: true }
  const judged = rulingsOf(events, place.attempt, id)
  const known = await knownAnswer(trx, judged.at(-1))
  if (known) return known

  const incident = toIncident(row)
  const state = fold(events, place.attempt, incident.resource)
  const settings = await readSettings(trx, deps.environment)
  const targets = prepared?.ok ? prepared.preparation.targets : []
  const policy = await readPolicy(trx, incident, settings, {
    ...{ tool: call.tool, targets, approvalId: place.approvalId },
    isEnding: toolFacts.get(call.tool)?.effect === 'terminal',
  })
  const at = await databaseTime(trx)
  const isEnding = toolFacts.get(call.tool)?.effect === 'terminal'
  const ground = isEnding ? { bodies: await bodiesOfEnding(trx, events, place.attempt) } : {}
  const judgement = judge({ ...call, callId: id, prepared, ...ground }, toolFacts, state, policy, Date.parse(at))
  const elsewhere = await decidedElsewhere(trx, judged.at(-1))
  const ruling: Ruling = elsewhere ? { ...judgement, ...elsewhere } : judgement
  if (ruling.code === 'NOT_QUIET_YET') return await keepEnding(trx, place, ruling)
  const joined = ruling.verdict === 'ask' ? await pendingOfAction(trx, ruling.actionDigest, place.incidentId) : null
  const step = judged.length === 0 ? undefined : judged.length
  await append(trx, place.incidentId, place.attempt, {
    kind: 'call_judged',
    actor: agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'call_judged', place.call, step),
    detail: `${ruling.verdict}: ${toolFacts.has(call.tool) ? call.tool : 'an unknown tool'} (${ruling.code}) ${ruling.reason}`,
    metadata: {
      callId: id,
      tool: call.tool,
      arguments: call.arguments,
      verdict: ruling.verdict,
      code: ruling.code,
      reason: ruling.reason,
      hint: ruling.hint,
      details: ruling.details,
      phase: ruling.phase,
      corrected: [...editsOf(call), ...ruling.corrected],
      effect: ruling.effect,
      risk: ruling.risk,
      targets: ruling.targets,
      actionDigest: ruling.actionDigest,
      policyVersion,
      foldedSeq: state.lastSeq,
      basis: basisOf(at, policy, prepared),
      approvalId: policy.approval?.id ?? joined,
    },
  })
  if (ruling.verdict === 'refuse' || ruling.arguments === null) {
    await setWaiting(trx, place.incidentId, false)
    const isLooping = refusalOf(ruling.code).loop === true && state.loops + 1 >= loopLimit
    return { kind: isLooping ? 'looping' : 'next' }
  }
  if (ruling.verdict === 'ask') {
    if (joined) return await joinApproval(trx, place.incidentId, joined)
    const expirySeconds = expirySecondsOf(settings, call.tool)
    const required = Math.max(requiredApprovals[ruling.risk], policy.raised.required)
    return await ask(trx, place, { call, ruling, prepared, expirySeconds, required, step })
  }
  return await start(trx, place, { call, ruling, state, events, approvalId: policy.approval?.id ?? null })
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

/** What an earlier run of this activity already decided about the call: found after a crash, it is not decided again. */
async function knownAnswer(trx: Trx, last: IncidentEvent<'call_judged'> | undefined): Promise<Ruled | null> {
  if (!last) return null
  if (last.metadata.verdict === 'refuse') return { kind: 'next' }
  const pending = await approvalOfCall(trx, last.incidentId, last.metadata.callId, ['pending'])
  return pending === null ? null : { kind: 'ask', approvalId: pending, expiresInMs: await lookAgainInMs(trx, pending) }
}

/** The approval this call joined was settled for the other incident: its action is done or denied, and not asked once more. */
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
    reason: `the very same action was asked for ${approval.incidentId} and is ${approval.status}`,
    hint: 'Look at the targets again: what they need may have been done.',
  }
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

/** The least a run waits before it looks again. */
const lookAgainMs = 250

async function lookAgainInMs(trx: Trx, approvalId: string): Promise<number> {
  const expiresAt = (await approvalState(trx, approvalId))?.expiresAt ?? ''
  return Math.max(lookAgainMs, Date.parse(expiresAt) - Date.parse(await databaseTime(trx)))
}

/** Somebody is asked about this very action already, for another incident: one answer serves both. */
async function joinApproval(trx: Trx, incidentId: string, approvalId: string): Promise<Ruled> {
  await setWaiting(trx, incidentId, true)
  return { kind: 'ask', approvalId, expiresInMs: Math.min(5_000, await lookAgainInMs(trx, approvalId)) }
}

type Asking = {
  call: EffectiveCall
  ruling: Ruling
  prepared: Call['prepared']
  expirySeconds: number
  /** How many people must agree. */
  required: number
  step: number | undefined
}

async function ask(trx: Trx, place: CallPlace, asking: Asking): Promise<Ruled> {
  const { call, ruling, prepared } = asking
  // The judge asks about prepared writes only: what cannot be prepared is refused.
  if (!prepared?.ok) throw new GiveUp('ASKED_UNPREPARED')
  const { preparation } = prepared
  const id = callId(place.turn, place.call)
  const replaced = await approvalOfCall(trx, place.incidentId, id, ['pending', 'approved'])
  if (replaced) await withdrawPending(trx, place.incidentId, 'the platform changed since it was asked')
  const approval = await requestApproval(trx, {
    incidentId: place.incidentId,
    attempt: place.attempt,
    turn: place.turn,
    callId: id,
    tool: call.tool,
    args: ruling.arguments ?? {},
    targets: ruling.targets,
    reason: typeof ruling.arguments?.reason === 'string' ? ruling.arguments.reason : '',
    actionDigest: ruling.actionDigest,
    stateFingerprint: preparation.stateFingerprint,
    risk: ruling.risk,
    reversible: toolFacts.get(call.tool)?.reversible ?? false,
    required: asking.required,
    dryRun: withProof(call.tool, preparation.dryRun),
    expirySeconds: asking.expirySeconds,
    stepKey: stepKey(place, place.turn, 'approval_requested', place.call, asking.step),
    replaces: replaced,
    actor: agentActor,
  })
  // The person who wrote the arguments has approved them by writing them, if that person may. Decided before the run begins to wait: nobody will wake it, so it looks at once.
  if (call.edit && (await voteOfEditor(trx, approval.id, call.edit)) !== 'pending') {
    return { kind: 'ask', approvalId: approval.id, expiresInMs: lookAgainMs }
  }
  return { kind: 'ask', approvalId: approval.id, expiresInMs: await lookAgainInMs(trx, approval.id) }
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

/** What will prove that it worked is said before anybody decides: by the call itself where it knows better, else by its tool. */
function withProof(tool: string, dryRun: Preparation['dryRun']): Preparation['dryRun'] {
  const proof = dryRun.proof ?? tools.get(tool)?.proof
  return proof ? { ...dryRun, proof } : dryRun
}
