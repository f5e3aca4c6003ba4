import { cancellationSignal } from '@temporalio/activity'
import { HttpError } from '../clients/http.ts'
import type { Db } from '../db/connect.ts'
import { StaleRunError } from '../db/log/append.ts'
import { proposedCall } from '../db/log/calls.ts'
import { eventOfCall } from '../db/log/events.ts'
import type { EnvironmentDefaults } from '../db/settings.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { CallRef } from '../domain/step-key.ts'
import type { CorePort } from '../domain/tool.ts'
import type { CallOutcome, Interruption } from '../workflows/outcome.ts'
import type { LaterCall } from './ask-people.ts'
import { endEarly } from './end-early.ts'
import { RetryLater } from './failures.ts'
import { withHeartbeat } from './heartbeat.ts'
import type { EffectiveCall } from './judge-call.ts'
import { lookAfterWrite } from './leader-looks.ts'
import { assertOwnRun } from './own-run.ts'
import { prepare } from './prepare.ts'
import { rule } from './rule.ts'
import { send } from './send.ts'
import { verifyWrite } from './verify-write.ts'

type ActDeps = { db: Db; core: CorePort; environment: EnvironmentDefaults; patienceMs?: number }

export function actActivities(deps: ActDeps) {
  return {
    /**
     * Judges one proposed call and carries out the policy decision ("ruling"). The input is a place
     * in the log; the activity reads call, verdict and approval from rows, and trusts nothing else
     * in the input. One transaction locks the incident, judges the call, and writes `call_judged`
     * and `tool_started`. Then the call is sent, and `tool_finished` is written. After a crash, the
     * activity continues after the last row.
     */
    async act(place: CallRef & { approvalId: string | null }): Promise<CallOutcome> {
      const signal = cancellationSignal()
      return await withHeartbeat(async () => {
        try {
          await assertOwnRun(deps.db, place)
          return await actOnce(deps, place, signal)
        } catch (error) {
          if (error instanceof StaleRunError) return { kind: 'fenced' }
          if (error instanceof HttpError) throw new RetryLater(`CORE_API_${error.code.toUpperCase()}`)
          throw error
        }
      })
    },

    /**
     * Waits for a write's condition to become true, and records the outcome (see
     * `domain/envelope.ts`).
     */
    async verify(place: CallRef): Promise<CallOutcome> {
      const signal = cancellationSignal()
      return await withHeartbeat(async () => {
        try {
          await assertOwnRun(deps.db, place)
          await verifyWrite(deps, place, signal)
          await lookAfterWrite(deps, place, signal)
          const finished = await eventOfCall(deps.db, place, 'tool_finished')
          return { kind: finished?.metadata.outcome === 'indeterminate' ? 'indeterminate' : 'next' }
        } catch (error) {
          if (error instanceof StaleRunError) return { kind: 'fenced' }
          throw error
        }
      })
    },

    /**
     * Handles the end of all alerts, or a person's request to stop the run. Returns true if the
     * incident is closed and the run has to end.
     */
    async endEarly(input: { incidentId: string; attempt: number; turn: number; why: Interruption }): Promise<boolean> {
      return await withHeartbeat(async () => {
        try {
          if ((await assertOwnRun(deps.db, input)) === 'closed') return true
          return await endEarly(deps, input)
        } catch (error) {
          if (error instanceof StaleRunError) return true
          throw error
        }
      })
    },
  }
}

export type ActActivities = ReturnType<typeof actActivities>

async function actOnce(
  deps: ActDeps,
  place: CallRef & { approvalId: string | null },
  signal: AbortSignal,
): Promise<CallOutcome> {
  const { db } = deps
  const finished = await eventOfCall(db, place, 'tool_finished')
  if (finished) return outcomeOf(finished)
  const started = await eventOfCall(db, place, 'tool_started')
  if (started) return outcomeOf(await send(deps, place, started, { again: true, signal }))

  const call = await effectiveCall(db, place)
  const prepared = await prepare(deps, place, call, signal)
  const ruleWith = (later: readonly LaterCall[] | null) =>
    db.transaction().execute((trx) => rule(deps, trx, place, { call, prepared, later }))
  const first = await ruleWith(null)
  const ruled = first.kind === 'prepare' ? await ruleWith(await prepareLater(deps, place, first.calls, signal)) : first
  if (ruled.kind === 'prepare') throw new Error('preparing the calls was requested twice')
  if (ruled.kind !== 'run') return ruled
  return outcomeOf(await send(deps, place, ruled.started, { again: ruled.again, signal }))
}

function outcomeOf(finished: IncidentEvent<'tool_finished'>): CallOutcome {
  const { effect, result } = finished.metadata
  if (effect === 'write') return { kind: 'verify' }
  if (effect === 'terminal' && result.ok) return { kind: 'closed' }
  return { kind: 'next' }
}

/**
 * Returns the call to judge: the model's call, or a person's change of that call before the
 * approval.
 */
async function effectiveCall(db: Db, place: CallRef): Promise<EffectiveCall> {
  const proposed = await proposedCall(db, place)
  // Refuses a call that nobody proposed. A run that somebody started by hand may name turns that no
  // model took.
  if (!proposed) throw new StaleRunError(place.incidentId, place.attempt, place.attempt)
  const { edit } = proposed
  if (!edit) return { ...proposed.call, edit: null }
  const { secret: _, ...call } = proposed.call
  return { ...call, arguments: edit.arguments, problem: null, edit: { ...edit, from: call.arguments } }
}

/**
 * Prepares the calls of the answer that come after the call about which people are asked, with one
 * attempt each. A call that cannot be prepared now is judged in its own turn.
 */
async function prepareLater(
  deps: ActDeps,
  place: CallRef,
  calls: readonly number[],
  signal: AbortSignal,
): Promise<LaterCall[]> {
  const later: LaterCall[] = []
  for (const index of calls) {
    const at = { ...place, call: index, approvalId: null }
    try {
      const call = await effectiveCall(deps.db, at)
      later.push({ place: at, call, prepared: await prepare({ ...deps, patienceMs: 0 }, at, call, signal) })
    } catch (error) {
      if (signal.aborted) throw error
    }
  }
  return later
}
