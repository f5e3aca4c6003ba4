import type { Db } from '../db/connect.ts'
import { StaleRunError } from '../db/log/append.ts'
import { eventByStepKey, eventOfCall, eventsOf } from '../db/log/events.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { LeaderLook, LeaderLooks } from '../domain/leader-look.ts'
import { type CallRef, callId, firstPlaceOfCode, type RunRef, stepKey } from '../domain/step-key.ts'
import type { CorePort } from '../domain/tool.ts'
import { prepare } from './prepare.ts'
import { rule } from './rule.ts'
import { send } from './send.ts'

/**
 * Reads that code makes for a follower: the reads that decided its leader's ending, at the
 * follower's own resource. These reads are judged, sent and stored like reads of a model, and the
 * follower's first turn has their results. Code never writes or asks people here, and a failing
 * read does not stop the run.
 */

type LookDeps = { db: Db; core: CorePort; environment: EnvironmentDefaults }

/** Milliseconds that a read may take; a longer read is left to the model. */
const lookWithinMs = 15_000

/** Makes the reads that precede the first turn. */
export async function lookFirst(deps: LookDeps, run: RunRef, signal: AbortSignal): Promise<void> {
  const looks = await looksOf(deps.db, run)
  if (looks) await takeLooks(deps, { ...run, turn: 0, call: firstPlaceOfCode }, looks.before, signal)
}

/**
 * Repeats the leader's reads from after the write that repaired the leader's resource, once the
 * same write is verified for the follower. Runs once per attempt, and only after the last call of
 * an answer, because a model with more calls reads by itself.
 */
export async function lookAfterWrite(deps: LookDeps, place: CallRef, signal: AbortSignal): Promise<void> {
  const looks = await looksOf(deps.db, place)
  if (!looks || looks.after.length === 0) return
  const events = await eventsOf(deps.db, place.incidentId, { attempt: place.attempt })
  const id = callId(place.turn, place.call)
  const held = events.some(
    (event) =>
      event.kind === 'verification' &&
      event.metadata.callId === id &&
      event.metadata.tool === looks.write &&
      event.metadata.outcome === 'held',
  )
  const isLast = events.some(
    (event) =>
      event.kind === 'model_answered' && event.turn === place.turn && event.metadata.calls.length === place.call + 1,
  )
  const was = events.some(
    (event) =>
      event.kind === 'call_judged' &&
      event.turn !== 0 &&
      event.turn !== place.turn &&
      event.metadata.callId === callId(event.turn ?? 0, firstPlaceOfCode),
  )
  if (held && isLast && !was) await takeLooks(deps, { ...place, call: firstPlaceOfCode }, looks.after, signal)
}

async function looksOf(db: Db, run: RunRef): Promise<LeaderLooks | null> {
  const opening = await eventByStepKey(db, stepKey(run, 0, 'context_assembled', 0), 'context_assembled')
  return opening?.metadata.looks ?? null
}

async function takeLooks(
  deps: LookDeps,
  first: CallRef,
  looks: readonly LeaderLook[],
  signal: AbortSignal,
): Promise<void> {
  for (const [index, look] of looks.entries()) {
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(lookWithinMs)])
      await takeLook(deps, { ...first, call: first.call + index }, look, within)
    } catch (error) {
      // Throws only if the run was superseded or stopped: the next request would fail too.
      if (error instanceof StaleRunError || signal.aborted) throw error
    }
  }
}

/**
 * Makes one read. A repeated activity finds the stored result. A read that had begun is sent again,
 * because reads may run twice.
 */
async function takeLook(deps: LookDeps, place: CallRef, look: LeaderLook, signal: AbortSignal): Promise<void> {
  const { db } = deps
  if (await eventOfCall(db, place, 'tool_finished')) return
  const impatient = { ...deps, patienceMs: 0 }
  const begun = await eventOfCall(db, place, 'tool_started')
  if (begun) return void (await send(impatient, place, begun, { again: true, signal }))
  const call = { id: callId(place.turn, place.call), ...look, problem: null, edit: null }
  const prepared = await prepare(impatient, place, call, signal)
  const ruled = await db
    .transaction()
    .execute((trx) => rule(deps, trx, { ...place, approvalId: null }, { call, prepared, later: [] }))
  if (ruled.kind === 'run') await send(impatient, place, ruled.started, { again: ruled.again, signal })
}
