import { setTimeout as sleep } from 'node:timers/promises'
import { type Db, isTransient } from '../db/connect.ts'
import { noteWait, type WaitedFor } from '../db/incidents/waits.ts'
import { actionOf, append } from '../db/log/append.ts'
import { countEvents, eventOfCall, eventsOf } from '../db/log/events.ts'
import { loseTrust } from '../db/trust/lose.ts'
import { releaseLeases } from '../db/writes/leases.ts'
import type { VerificationOutcome } from '../domain/envelope.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { formatVerification } from '../domain/format-approval.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { type CallRef, type RunRef, stepKey } from '../domain/step-key.ts'
import type { CorePort, Observation, ToolContext } from '../domain/tool.ts'
import { fold } from '../safety/fold.ts'
import { tools } from '../tools/registry.ts'
import { patienceMs, retryWhileAway, whoIsAway } from './wait-while-away.ts'

type VerifyDeps = { db: Db; core: CorePort }

const pollEveryMs = 500

/**
 * Reads a write's condition until it holds or its time is over. Every outcome except `open`
 * completes the verification and releases the target. A condition that cannot be read stays `open`,
 * and blocks the next write until the model has read the target. Does not wait after a known
 * failure, nor for a write without a condition.
 */
export async function verifyWrite(deps: VerifyDeps, place: CallRef, signal: AbortSignal): Promise<void> {
  const started = await eventOfCall(deps.db, place, 'tool_started')
  if (!started) return
  const { postcondition } = tools.get(started.metadata.tool) ?? {}
  if (!postcondition || (await isVerified(deps.db, place, started))) return

  const failure = await failureOf(deps.db, place, started)
  const deadline = Date.now() + postcondition.withinSeconds * 1000
  let last: Observation | null = null
  do {
    // Excludes the time in which no read was possible, so that one more read follows an outage.
    const look = () => observe(deps, place, started, failure, 'throw')
    const note = (away: WaitedFor | null) => noteWait(deps.db, place, away)
    last = (await retryWhileAway(look, { forMs: patienceMs, signal, note }).catch(unlessStopped(signal))) ?? last
    if (last && (last.holds !== false || failure !== null)) break
    await sleep(pollEveryMs, undefined, { signal })
  } while (Date.now() < deadline)
  await recordVerification(deps.db, place, started, last)
}

/** Returns null after a failed read, which shows nothing, but throws if the run was stopped. */
function unlessStopped(signal: AbortSignal): (error: unknown) => null {
  return (error) => {
    if (signal.aborted || isTransient(error)) throw error
    return null
  }
}

/**
 * Completes an open verification after a successful read of its target, by reading the
 * postcondition again.
 */
export async function closeByReading(
  deps: VerifyDeps,
  place: CallRef,
  read: IncidentEvent<'tool_finished'>,
): Promise<void> {
  const events = await eventsOf(deps.db, place.incidentId, { attempt: place.attempt })
  const { open } = fold(events, place.attempt)
  if (!open) return
  const looked = new Set([...read.metadata.targets, ...read.metadata.discovered].map(resourceKey))
  if (!open.targets.some((target) => looked.has(resourceKey(target)))) return
  const started = events.find((event) => event.seq === open.startedSeq)
  if (started?.kind !== 'tool_started') return
  const observation = await observe(deps, place, started, await failureOf(deps.db, place, started))
  if (observation) await recordVerification(deps.db, place, started, observation)
}

/** Reads once, for a run that is about to stop, and records the result. */
export async function lookOnce(deps: VerifyDeps, run: RunRef): Promise<void> {
  const events = await eventsOf(deps.db, run.incidentId, { attempt: run.attempt })
  const { open } = fold(events, run.attempt)
  const started = open ? events.find((event) => event.seq === open.startedSeq) : undefined
  if (started?.kind !== 'tool_started') return
  const place = { ...run, turn: started.turn ?? 0, call: 0 }
  const observation = await observe(deps, place, started, await failureOf(deps.db, run, started))
  await recordVerification(deps.db, run, started, observation)
}

async function observe(
  deps: VerifyDeps,
  place: CallRef,
  started: IncidentEvent<'tool_started'>,
  failure: string | null,
  whenAway: 'throw' | 'answer null' = 'answer null',
): Promise<Observation | null> {
  try {
    const { postcondition } = tools.get(started.metadata.tool) ?? {}
    const context = { ...toolContext(deps, place), stepKey: started.stepKey ?? '' }
    const seen = (await postcondition?.check(started.metadata.arguments, null, context)) ?? null
    // Reports "not held" for a failed write: the state may be as wished for another reason.
    return seen?.holds && failure !== null
      ? { holds: false, observed: `it failed (${failure}); ${seen.observed}` }
      : seen
  } catch (error) {
    if (whenAway === 'throw' && whoIsAway(error) !== null) throw error
    // Leaves the verification open, because a state that cannot be read now does not mean "not
    // held". The condition is read again later.
    return null
  }
}

/**
 * Returns why the write failed, as its answer states it; null if it was done, or its outcome is
 * unknown.
 */
async function failureOf(db: Db, run: RunRef, started: IncidentEvent<'tool_started'>): Promise<string | null> {
  const events = await eventsOf(db, run.incidentId, { attempt: run.attempt, afterSeq: started.seq })
  const finished = events.find(
    (event) => event.kind === 'tool_finished' && event.metadata.callId === started.metadata.callId,
  )
  if (finished?.kind !== 'tool_finished' || finished.metadata.outcome !== 'failed') return null
  return finished.metadata.result.error?.message || 'the tool gave no reason'
}

async function isVerified(db: Db, run: RunRef, started: IncidentEvent<'tool_started'>): Promise<boolean> {
  const events = await eventsOf(db, run.incidentId, { attempt: run.attempt, afterSeq: started.seq })
  return events.some((event) => event.kind === 'verification' && event.metadata.callId === started.metadata.callId)
}

function outcomeOf(observation: Observation | null): VerificationOutcome {
  if (observation === null) return 'open'
  if (observation.holds === null) return 'unproven'
  return observation.holds ? 'held' : 'not_held'
}

const notKnown = 'it is not known what the write changed, and no read before the write showed the target unhealthy'

/**
 * Counts a nominal read after a write as a repair only if the write names a change, or an earlier
 * read showed its target unhealthy.
 */
async function unlessAsBefore(
  db: Db,
  run: RunRef,
  { metadata: { callId } }: IncidentEvent<'tool_started'>,
  observation: Observation | null,
): Promise<Observation | null> {
  if (!observation?.holds) return observation
  const { writes } = fold(await eventsOf(db, run.incidentId, { attempt: run.attempt }), run.attempt)
  const write = writes.findLast((each) => each.callId === callId)
  const isBetter = write?.targets.some((target) => write.illBefore.includes(resourceKey(target)))
  if (!write || write.changed !== null || isBetter) return observation
  return { ...observation, holds: null, observed: `${observation.observed}; ${notKnown}` }
}

function promisedBy(tool: string): string {
  const { proof } = tools.get(tool) ?? {}
  return proof?.by === 'state' ? proof.text : ''
}

async function recordVerification(
  db: Db,
  run: RunRef,
  started: IncidentEvent<'tool_started'>,
  looked: Observation | null,
): Promise<void> {
  const { callId, tool, targets } = started.metadata
  const observation = await unlessAsBefore(db, run, started, looked)
  const outcome = outcomeOf(observation)
  // Lowers trust only after a write that ran and did not help. A failed write repaired nothing.
  const isWrong = outcome === 'not_held' && (await failureOf(db, run, started)) === null
  await db.transaction().execute(async (trx) => {
    const earlier = await countEvents(trx, run, 'verification')
    await append(trx, run.incidentId, run.attempt, {
      kind: 'verification',
      actor: started.actor,
      turn: started.turn,
      stepKey: stepKey(run, started.turn ?? 0, 'verification', started.seq, earlier),
      action: actionOf('verification', { verified: outcome }),
      detail: observation
        ? `${tool}: ${observation.observed} (${formatVerification(outcome).toLowerCase()})`
        : `${tool}: the target could not be read`,
      metadata: {
        callId,
        tool,
        targets,
        writeSeq: started.seq,
        outcome,
        postcondition: outcome === 'unproven' ? '' : promisedBy(tool),
        observed: observation?.observed ?? '',
        ...(observation?.steps && { steps: observation.steps }),
      },
    })
    if (outcome !== 'open') await releaseLeases(trx, run.incidentId)
    if (isWrong)
      await loseTrust(trx, run.incidentId, {
        callIds: [callId],
        why: `the promised state was not reached (${observation?.observed})`,
      })
  })
}

/**
 * Reads the condition of each target's newest write now, for a closed incident, and returns the
 * worst outcome. Null if the attempt wrote nothing. Records nothing.
 */
export async function verificationNow(
  deps: VerifyDeps,
  run: RunRef,
): Promise<{ outcome: VerificationOutcome; observed: string; targets: ResourceRef[] } | null> {
  const events = await eventsOf(deps.db, run.incidentId, { attempt: run.attempt })
  const { writes } = fold(events, run.attempt)
  const newest = new Map(
    writes.flatMap((write) => write.targets.map((target) => [resourceKey(target), write] as const)),
  )
  const seen: { outcome: VerificationOutcome; observed: string }[] = []
  for (const write of new Set(newest.values())) {
    const started = events.find((event) => event.seq === write.startedSeq)
    if (started?.kind !== 'tool_started') continue
    const place = { ...run, turn: started.turn ?? 0, call: 0 }
    const observation = await observe(deps, place, started, null)
    seen.push({
      outcome: outcomeOf(observation),
      observed: observation?.observed ?? `${write.tool} could not be read`,
    })
  }
  if (seen.length === 0) return null
  const worst = byGravity.find((word) => seen.some(({ outcome }) => outcome === word)) ?? 'held'
  return {
    outcome: worst,
    observed: seen.map(({ observed }) => observed).join('; '),
    targets: writes.flatMap(({ targets }) => targets),
  }
}

const byGravity: VerificationOutcome[] = ['not_held', 'open', 'unproven']

/** Builds a tool's context for one call, with the step key, so that the receiver acts only once. */
export function toolContext(deps: { core: CorePort }, place: CallRef, signal?: AbortSignal): ToolContext {
  return {
    core: deps.core,
    incidentId: place.incidentId,
    stepKey: stepKey(place, place.turn, 'tool_started', place.call),
    ifMatch: null,
    ...(signal ? { signal } : {}),
  }
}
