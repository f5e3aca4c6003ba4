import { toEnvelope } from '../../activities/send.ts'
import { actionByKeys } from '../../domain/approval.ts'
import { readChanged } from '../../domain/changed.ts'
import { marked } from '../../domain/claim.ts'
import { blockedEnvelope, failedEnvelope } from '../../domain/envelope.ts'
import { agentActor, type IncidentEvent, type JudgedBasis } from '../../domain/event.ts'
import { type Policy, plainPolicy, refusalOf } from '../../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import { type CallRef, stepKey } from '../../domain/step-key.ts'
import type { CoreAnswer, DiscoveredThing, Envelope } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { type Call, policyVersion, type Ruling } from '../../safety/judge.ts'
import { resolveArguments } from '../../safety/resolve-arguments.ts'
import { maxRepeats } from '../../safety/ruling.ts'
import type { CallOutcome } from '../../workflows/outcome.ts'
import { requestApproval, usable, withdraw } from './propose.ts'
import { judgeWithout } from './schedule.ts'
import {
  append,
  boundary,
  execute,
  facts,
  keyOf,
  Lost,
  look,
  observe,
  prepare,
  problem,
  type SimApproval,
  type SimIncident,
  vicinityOf,
  type World,
} from './world.ts'

type Started = IncidentEvent<'tool_started'>
type Place = CallRef & { approvalId: string | null }

/**
 * `activities/act.ts` over the simulated world: the same order of rows, sends and look-ups, and the
 * same judge.
 */
export async function act(world: World, incident: SimIncident, place: Place): Promise<CallOutcome> {
  await boundary(world)
  const finished = rowOf(incident, place, 'tool_finished') as IncidentEvent<'tool_finished'> | undefined
  if (finished && world.without !== 'step_key') return outcomeOf(finished)
  const started = rowOf(incident, place, 'tool_started') as Started | undefined
  if (started && world.without !== 'step_key') return outcomeOf(await send(world, incident, place, started, true))

  const proposed = proposedCall(incident, place)
  const call: Call = { ...proposed, callId: proposed.id, prepared: null }
  call.prepared = prepareFor(world, incident, place, call)
  await boundary(world)
  // From here to the return nothing else happens: one transaction.
  const ruled = await rule(world, incident, place, call)
  if (ruled.kind !== 'run') return ruled
  await boundary(world)
  return outcomeOf(await send(world, incident, place, ruled.started, ruled.again))
}

function proposedCall(incident: SimIncident, place: Place) {
  const answered = incident.byKey.get(stepKey(place, place.turn, 'model_answered', 0))
  const call = answered?.kind === 'model_answered' ? answered.metadata.calls[place.call] : undefined
  if (!call) throw new Error('a call that nobody proposed')
  return call
}

function prepareFor(world: World, incident: SimIncident, place: Place, call: Call): Call['prepared'] {
  const tool = facts.get(call.tool)
  const parsed = call.arguments && tool ? tool.input.safeParse(call.arguments) : null
  if (!tool || !parsed?.success) return null
  const state = fold(incident.rows, place.attempt, incident.resource)
  const settled = resolveArguments(tool, parsed.data as Record<string, unknown>, state, world.nowMs)
  return prepare(world, call.tool, settled.arguments)
}

type Ruled = Exclude<CallOutcome, { kind: 'verify' }> | { kind: 'run'; started: Started; again: boolean }

async function rule(world: World, incident: SimIncident, place: Place, call: Call): Promise<Ruled> {
  if (place.attempt !== incident.attempt) return { kind: 'fenced' }
  if (incident.status !== 'investigating' && incident.status !== 'awaiting_approval') return { kind: 'closed' }
  const known = rowOf(incident, place, 'tool_started') as Started | undefined
  if (known && world.without !== 'step_key') return { kind: 'run', started: known, again: true }
  const judged = incident.rows.filter(
    (row) => row.kind === 'call_judged' && row.attempt === place.attempt && row.metadata.callId === call.callId,
  ) as IncidentEvent<'call_judged'>[]
  const last = judged.at(-1)
  if (last?.metadata.verdict === 'refuse') return { kind: 'next' }
  const pending = [...world.approvals.values()].find(
    (each) => each.incidentId === incident.id && each.callId === call.callId && each.status === 'pending',
  )
  if (pending) return { kind: 'ask', approvalId: pending.id, expiresInMs: pending.expiresAtMs - world.nowMs }

  const state = fold(incident.rows, place.attempt, incident.resource)
  const targets = call.prepared?.ok ? call.prepared.preparation.targets : []
  const policy = await policyFor(world, incident, { tool: call.tool, targets, approvalId: place.approvalId })
  const ruling = judgeWithout(world.without, call, facts, state, policy, world.nowMs)
  if (ruling.code === 'NOT_QUIET_YET') return { kind: 'wait', waitMs: Number(ruling.details.waitSeconds) * 1000 }
  const step = judged.length === 0 ? undefined : judged.length
  append(world, incident, place.attempt, {
    kind: 'call_judged',
    actor: agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'call_judged', place.call, step),
    detail: ruling.reason,
    metadata: {
      callId: call.callId,
      tool: call.tool,
      arguments: call.arguments,
      verdict: ruling.verdict,
      code: ruling.code,
      reason: ruling.reason,
      hint: ruling.hint,
      details: ruling.details,
      phase: ruling.phase,
      corrected: ruling.corrected,
      effect: ruling.effect,
      risk: ruling.risk,
      targets: ruling.targets,
      actionDigest: ruling.actionDigest,
      policyVersion,
      foldedSeq: state.lastSeq,
      basis: basisOf(world, policy, call.prepared),
      approvalId: policy.approval?.id ?? null,
    },
  })
  if (ruling.verdict === 'refuse' || ruling.arguments === null) {
    incident.status = 'investigating'
    const isLooping = refusalOf(ruling.code).loop === true && state.loops + 1 >= maxRepeats
    return { kind: isLooping && world.without !== 'budgets' ? 'looping' : 'next' }
  }
  if (ruling.verdict === 'ask') return ask(world, incident, place, call, ruling)
  return start(world, incident, place, call, ruling, policy)
}

function basisOf(world: World, policy: Policy, prepared: Call['prepared']): JudgedBasis {
  const at = new Date(world.nowMs).toISOString()
  if (!prepared?.ok) return { at, policy: { ...policy }, prepared }
  const { targets, identity, stateFingerprint } = prepared.preparation
  return { at, policy: { ...policy }, prepared: { ok: true, targets, identity, stateFingerprint } }
}

async function policyFor(
  world: World,
  incident: SimIncident,
  { tool, targets, approvalId }: { tool: string; targets: readonly ResourceRef[]; approvalId: string | null },
): Promise<Policy> {
  const denials = [...world.incidents.values()]
    .filter((each) => each.type === incident.type)
    .flatMap((each) => each.rows)
    .flatMap((row) => (row.kind === 'approval_decided' && row.metadata.decision === 'deny' ? [row.metadata] : []))
  const denied = denials.map(({ actionDigest }) => actionDigest)
  const approvals = denials.flatMap((each) => world.approvals.get(each.approvalId) ?? [])
  const leaseKey = keyOf(world, 'lease_names')
  const busy = targets.flatMap((target) => {
    const lease = world.leases.get(leaseKey(target))
    return lease && lease.incidentId !== incident.id ? [{ target: leaseKey(target), incidentId: lease.incidentId }] : []
  })
  const approval = usable(world, incident.id, approvalId)
  return {
    ...plainPolicy(incident.id, incident.resource),
    ...deniedByKey(world, tool, targets, approvals),
    vicinity: await vicinityOf(world, incident.resource),
    denied,
    busy,
    approval,
    alerts: alertsOf(world, incident),
  }
}

/** As `db/policy.ts` reads it: the denials of this tool by the key of each thing. */
function deniedByKey(world: World, tool: string, targets: readonly ResourceRef[], approvals: SimApproval[]) {
  const own = approvals.filter((each) => each.tool === tool)
  const toolOf = facts.get(tool)
  if (own.length === 0 || !toolOf) return {}
  const key = keyOf(world, 'denial_names')
  return {
    deniedActions: own.map((each) => actionByKeys(toolOf, each, key)),
    keys: Object.fromEntries(targets.map((target) => [resourceKey(target), key(target)])),
  }
}

const quietSeconds = 120

/** What the rows of alerts say at this moment; without the gate, that all is over. */
function alertsOf(world: World, { alert, status }: SimIncident): Policy['alerts'] {
  const needed = status === 'awaiting_approval' ? quietSeconds * 2.5 : quietSeconds
  const none = { unknown: 0, endless: 0, quietSeconds: needed }
  if (world.without === 'alerts') return { ...none, total: 1, firing: 0, endedForSeconds: 3_600 }
  if (alert.firing) return { ...none, total: 1, firing: 1, endedForSeconds: null }
  return { ...none, total: 1, firing: 0, endedForSeconds: (world.nowMs - alert.endedAtMs) / 1000 }
}

function ask(world: World, incident: SimIncident, place: Place, call: Call, ruling: Ruling): Ruled {
  if (!call.prepared?.ok) throw new Error('asked about what could not be prepared')
  withdraw(world, incident, call.callId)
  const approval = requestApproval(world, incident, place, call, ruling, call.prepared.preparation.stateFingerprint)
  incident.status = 'awaiting_approval'
  return { kind: 'ask', approvalId: approval.id, expiresInMs: approval.expiresAtMs - world.nowMs }
}

function start(world: World, incident: SimIncident, place: Place, call: Call, ruling: Ruling, policy: Policy): Ruled {
  if (ruling.effect === 'write') {
    const keys = ruling.targets.map(keyOf(world, 'lease_names'))
    const isTaken = keys.some((key) => {
      const lease = world.leases.get(key)
      return lease !== undefined && lease.incidentId !== incident.id
    })
    if (isTaken && world.without !== 'leases') throw new Lost('target taken')
    for (const key of keys) world.leases.set(key, { incidentId: incident.id, callId: call.callId })
  }
  const approval = policy.approval ? world.approvals.get(policy.approval.id) : undefined
  if (approval && ruling.code === 'APPROVED') {
    if (approval.status !== 'approved' || world.nowMs > approval.useByMs) throw new Lost('approval late')
    approval.status = 'consumed'
    approval.history.push('consumed')
  }
  incident.status = 'investigating'
  const { event } = append(world, incident, place.attempt, {
    kind: 'tool_started',
    actor: agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'tool_started', place.call),
    detail: call.tool,
    metadata: {
      callId: call.callId,
      tool: call.tool,
      arguments: ruling.arguments ?? {},
      effect: ruling.effect,
      risk: ruling.risk,
      targets: ruling.targets,
      actionDigest: ruling.actionDigest,
      approvalId: ruling.code === 'APPROVED' ? (approval?.id ?? null) : null,
    },
  })
  return { kind: 'run', started: event, again: false }
}

type Sent = { envelope: Envelope; outcome: 'done' | 'failed' | 'indeterminate'; discovered: DiscoveredThing[] }

async function send(world: World, incident: SimIncident, place: Place, started: Started, again: boolean) {
  const { tool, effect, arguments: args } = started.metadata
  const sent =
    effect === 'write'
      ? await sendWrite(world, incident, started, again)
      : sendOther(world, incident, place, tool, args, effect)
  // The effect is there, the row is not yet: the favourite moment of every crash.
  await boundary(world)
  const { event } = append(world, incident, place.attempt, {
    kind: 'tool_finished',
    actor: agentActor,
    turn: place.turn,
    stepKey: stepKey(place, place.turn, 'tool_finished', place.call),
    detail: tool,
    metadata: {
      callId: started.metadata.callId,
      tool,
      arguments: args,
      effect,
      targets: started.metadata.targets,
      outcome: sent.outcome,
      result: sent.envelope,
      body: null,
      discovered: sent.discovered,
      durationMs: 1,
      ...(effect === 'write' && { changed: readChanged(sent.envelope.data) }),
    },
  })
  if (sent.envelope.ok && (effect === 'read' || effect === 'resolve')) closeByReading(world, incident, place, event)
  return event
}

function sendOther(
  world: World,
  incident: SimIncident,
  place: Place,
  tool: string,
  args: Record<string, unknown>,
  effect: string,
): Sent {
  if (world.random.chance(world.faults)) {
    return { envelope: failedEnvelope('UNANSWERED', 'no answer'), outcome: 'failed', discovered: [] }
  }
  if (tool === 'exec') world.executed.push({ incidentId: incident.id, command: String(args.command), as: 'read' })
  if (effect === 'terminal') return sentOf(close(world, incident, place, tool, args))
  if (effect === 'record') return sentOf({ ok: true, status: 201, data: {} })
  const { answer, discovered } = look(world, incident, tool, args)
  return { ...sentOf(answer), discovered: answer.ok ? discovered : [] }
}

async function sendWrite(world: World, incident: SimIncident, started: Started, again: boolean): Promise<Sent> {
  const { tool, targets, approvalId, arguments: args } = started.metadata
  const key = started.stepKey ?? ''
  if (again) {
    const known = becameOf(world, key)
    if (known) return known
  }
  await boundary(world)
  const approval = approvalId ? world.approvals.get(approvalId) : undefined
  const ifMatch = approval?.stateFingerprint ?? null
  const isStale = ifMatch?.startsWith('drift-') && ifMatch !== `drift-${world.drift}`
  const answer = isStale ? problem(412, 'STATE_CHANGED') : execute(world, incident, { key, tool, targets, ifMatch })
  if (tool === 'exec' && answer.ok) {
    world.executed.push({ incidentId: incident.id, command: String(args.command), as: 'write' })
  }
  // Done, and the answer is lost: only the key can tell.
  if (world.random.chance(world.faults)) {
    const known = becameOf(world, key)
    if (known) return known
    throw new Lost('not accepted')
  }
  return sentOf(answer)
}

/**
 * What the platform's journal says of a key. Rarely the journal itself is gone: then nobody can
 * tell.
 */
function becameOf(world: World, key: string): Sent | null {
  if (world.random.chance(world.faults / 8)) {
    return { envelope: failedEnvelope('INDETERMINATE', 'cannot be told'), outcome: 'indeterminate', discovered: [] }
  }
  const effect = world.effects.get(key)
  if (!effect) return null
  return effect.status === 'done'
    ? { envelope: { ok: true, data: { changed: effect.changed }, meta: {} }, outcome: 'done', discovered: [] }
    : { envelope: failedEnvelope('EFFECT_FAILED', 'failed'), outcome: 'failed', discovered: [] }
}

function sentOf(answer: CoreAnswer): Sent {
  if (!answer.ok && answer.status === 403) {
    return { envelope: blockedEnvelope('POLICY_BLOCKED', 'UNJUDGED', 'refused'), outcome: 'failed', discovered: [] }
  }
  return { envelope: toEnvelope(answer), outcome: answer.ok ? 'done' : 'failed', discovered: [] }
}

function close(
  world: World,
  incident: SimIncident,
  place: Place,
  tool: string,
  args: Record<string, unknown>,
): CoreAnswer {
  const status = tool === 'resolve_incident' ? 'resolved' : 'escalated'
  const key = stepKey(place, place.turn, status, place.call)
  if (incident.byKey.has(key)) return { ok: true, status: 200, data: {} }
  if (['resolved', 'escalated', 'cancelled'].includes(incident.status)) return problem(409, 'NOT_ALLOWED')
  const by = { actor: agentActor, turn: place.turn, stepKey: key, detail: status }
  if (status === 'resolved') {
    const { resolution, outcome, claims } = args as { resolution: string; outcome: 'repaired' | 'no_fault'; claims: [] }
    // In the transaction that closes, whatever was true when it was judged.
    if (outcome !== 'repaired' && incident.alert.firing && world.without !== 'alerts')
      return problem(409, 'STILL_FIRING')
    const { alert } = incident
    const quietMs = alert.firing ? 0 : world.nowMs - alert.endedAtMs
    incident.closings.push({ seq: incident.rows.length + 1, alertFired: alert.firing, quietMs })
    const judged = incident.rows.findLast((row) => row.kind === 'call_judged' && row.metadata.tool === tool)
    const found = judged?.kind === 'call_judged' ? judged.metadata.details : undefined
    append(world, incident, place.attempt, {
      ...by,
      kind: 'resolved',
      metadata: { resolution, outcome, claims: marked(claims, found).claims, confidence: null },
    })
  } else {
    append(world, incident, place.attempt, {
      ...by,
      kind: 'escalated',
      metadata: {
        reason: String(args.reason),
        code: 'MODEL',
        severity: 'warning' as const,
        ...(args.category === 'mitigated' && { category: args.category }),
      },
    })
  }
  incident.status = status
  for (const [target, lease] of world.leases) if (lease.incidentId === incident.id) world.leases.delete(target)
  return { ok: true, status: 200, data: {} }
}

function outcomeOf(finished: IncidentEvent<'tool_finished'>): CallOutcome {
  const { effect, result } = finished.metadata
  if (effect === 'write') return { kind: 'verify' }
  if (effect === 'terminal' && result.ok) return { kind: 'closed' }
  return { kind: 'next' }
}

/**
 * `activities/verify-write.ts`: polls what the write promised, then says held, not held, or that it
 * could not be read.
 */
export async function verify(world: World, incident: SimIncident, place: CallRef): Promise<CallOutcome> {
  const started = rowOf(incident, place, 'tool_started') as Started | undefined
  const finished = rowOf(incident, place, 'tool_finished') as IncidentEvent<'tool_finished'> | undefined
  if (!started || !finished) throw new Error('nothing to verify')
  const isDone = incident.rows.some(
    (row) => row.kind === 'verification' && row.metadata.callId === started.metadata.callId && row.seq > started.seq,
  )
  if (!isDone) {
    // Now and then nothing can be read for as long as code waits: then it is the model's to look.
    const isBlind = world.random.chance(world.faults * 3)
    let last: { holds: boolean } | null = null
    for (let look = 0; look < 3 && !last?.holds; look += 1) {
      await boundary(world)
      last = (isBlind ? null : observe(world, started.metadata.targets)) ?? last
    }
    recordVerification(world, incident, place, started, last)
  }
  return { kind: finished.metadata.outcome === 'indeterminate' ? 'indeterminate' : 'next' }
}

function closeByReading(world: World, incident: SimIncident, place: CallRef, read: IncidentEvent<'tool_finished'>) {
  const { open } = fold(incident.rows, place.attempt)
  if (!open) return
  const looked = new Set([...read.metadata.targets, ...read.metadata.discovered].map(resourceKey))
  if (!open.targets.some((target) => looked.has(resourceKey(target)))) return
  const started = incident.rows.find((row) => row.seq === open.startedSeq)
  const seen = observe(world, open.targets)
  if (seen && started?.kind === 'tool_started') recordVerification(world, incident, place, started, seen)
}

function recordVerification(
  world: World,
  incident: SimIncident,
  place: CallRef,
  started: Started,
  seen: { holds: boolean } | null,
) {
  const { callId: id, tool, targets } = started.metadata
  const hasFailed = incident.rows.some(
    (row) => row.kind === 'tool_finished' && row.metadata.callId === id && row.metadata.outcome === 'failed',
  )
  // What failed does not hold, even where the state is as wished for.
  const outcome = seen === null ? 'open' : seen.holds && !hasFailed ? 'held' : 'not_held'
  const earlier = incident.rows.filter((row) => row.kind === 'verification').length
  append(world, incident, place.attempt, {
    kind: 'verification',
    actor: agentActor,
    turn: started.turn,
    stepKey: stepKey(place, started.turn ?? 0, 'verification', started.seq, earlier),
    detail: outcome,
    metadata: { callId: id, tool, targets, writeSeq: started.seq, outcome, postcondition: '', observed: '' },
  })
  if (outcome === 'open') return
  for (const [target, lease] of world.leases) if (lease.incidentId === incident.id) world.leases.delete(target)
}

function rowOf(incident: SimIncident, place: CallRef, kind: 'tool_started' | 'tool_finished') {
  return incident.byKey.get(stepKey(place, place.turn, kind, place.call))
}
