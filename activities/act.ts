import { cancellationSignal } from '@temporalio/activity'
import { HttpError } from '../clients/http.ts'
import { databaseTime } from '../db/clock.ts'
import { type Db, isTransient } from '../db/connect.ts'
import { type Closing, closeIncident } from '../db/incidents/close-incident.ts'
import { lockIncident, toIncident } from '../db/incidents/incidents.ts'
import { handOver } from '../db/incidents/owners.ts'
import { stopWish, takerOf } from '../db/incidents/stop-requests.ts'
import { noteWait, type WaitedFor } from '../db/incidents/waits.ts'
import { lifecycleRules, lifecycleView } from '../db/lifecycle/read-lifecycle.ts'
import { StaleRunError } from '../db/log/append.ts'
import { recordSecurityEvent } from '../db/log/audit.ts'
import { proposedCall } from '../db/log/calls.ts'
import { eventOfCall, eventsOf } from '../db/log/events.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { agentActor, type IncidentEvent, type ProposedCall } from '../domain/event.ts'
import { isQuiet } from '../domain/lifecycle.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { type CallPlace, parseCallId } from '../domain/step-key.ts'
import type { CorePort, Tool } from '../domain/tool.ts'
import { fold, type State } from '../safety/fold.ts'
import type { Call } from '../safety/judge.ts'
import { resolveArguments } from '../safety/resolve-arguments.ts'
import { ProposalError } from '../tools/placement.ts'
import { tools } from '../tools/registry.ts'
import type { Act, Interruption } from '../workflows/outcome.ts'
import { assertOwnRun, patienceMs, RetryLater, retryWhileAway, withHeartbeat } from './activity.ts'
import type { LaterCall } from './ask-people.ts'
import type { EffectiveCall } from './judge-call.ts'
import { rule } from './rule.ts'
import { send } from './send.ts'
import { lookOnce, toolContext, verifyWrite } from './verify.ts'

/**
 * Ends a run before its model does. Stopped by a person: one look at what was written, then closed. Alerts ended: before any write
 * the incident resolved itself; after one, its verification is finished first and the run goes on to say what it repaired.
 * Answers whether the incident is closed.
 */
async function endEarly(
  deps: { db: Db; core: CorePort },
  input: { incidentId: string; attempt: number; turn: number; why: Interruption },
): Promise<boolean> {
  const { db } = deps
  const { incidentId, attempt, why } = input
  const events = await eventsOf(db, incidentId, { attempt })
  const state = fold(events, attempt)
  if (why !== 'alert_resolved') return await stop(deps, input)
  // The model ended it already and the run waits for quiet: its words are better than a sentence of code.
  if (keepsEnding(events)) return false
  if (state.writes.length > 0) {
    const started = state.open ? events.find((event) => event.seq === state.open?.startedSeq) : null
    if (started) {
      const call = (state.open && parseCallId(state.open.callId)?.call) ?? 0
      await verifyWrite(deps, { incidentId, attempt, turn: started.turn ?? 0, call }, cancellationSignal())
    }
    return false
  }
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (!row) return false
    const settings = await readSettings(trx)
    const view = await lifecycleView(trx, row, settings)
    // It fired again meanwhile, or was quiet for too short a time: there may be something to investigate after all.
    if (!isQuiet(view, lifecycleRules(settings, row.type)) || isKnownIll(state, toIncident(row).resource)) return false
    await closeIncident(
      trx,
      incidentId,
      attempt,
      {
        status: 'resolved',
        outcome: 'self_resolved',
        resolution: 'Every alert of this incident ended by itself before anything was written',
        claims: [],
        confidence: null,
      },
      { actor: agentActor, stepKey: null },
    )
    return true
  })
}

/**
 * Ends a run that is to stop: as a person asked for, which is a row. A signal that no row stands behind stops nothing and leaves a
 * `security_event`; a run that was cancelled in Temporal itself cannot go on, and a person gets the incident.
 */
async function stop(
  deps: { db: Db; core: CorePort },
  { incidentId, attempt, why }: { incidentId: string; attempt: number; why: Interruption },
): Promise<boolean> {
  const { db } = deps
  const wish = await stopWish(db, incidentId, attempt)
  if (wish === null && why === 'cancel') {
    await db.transaction().execute(async (trx) => {
      if (!(await lockIncident(trx, incidentId))) return
      const detail = 'a signal asked this run to stop, and no person did'
      await recordSecurityEvent(trx, incidentId, { code: 'FORGED_CANCEL', door: 'signal', subject: 'unknown', detail })
    })
    return false
  }
  await lookOnce(deps, { incidentId, attempt })
  await db.transaction().execute(async (trx) => {
    const taker = await takerOf(trx, incidentId, attempt)
    if (taker) return await handOver(trx, incidentId, attempt, taker)
    const closing: Closing =
      wish === null
        ? {
            status: 'escalated',
            code: 'RUN_STOPPED',
            reason: 'The run was cancelled in Temporal, and no person asked for that here',
          }
        : { status: 'cancelled', ...cancellation(await eventsOf(trx, incidentId, { attempt })) }
    await closeIncident(trx, incidentId, attempt, closing, { actor: agentActor, stepKey: null })
  })
  return true
}

function keepsEnding(events: readonly IncidentEvent[]): boolean {
  // A note of which model is asked says nothing about the ending.
  const last = events.findLast(
    (event) => event.kind === 'model_answered' || (event.kind === 'noted' && event.metadata.code !== 'model_route'),
  )
  return last?.kind === 'noted' && last.metadata.code === 'ending_kept'
}

/** The incident's own resource was seen ill in this attempt: its alert may have ended for another reason. */
function isKnownIll(state: State, resource: ResourceRef | null): boolean {
  const health = resource ? (state.looks.get(resourceKey(resource))?.health ?? null) : null
  return health !== null && health !== 'nominal' && health !== 'unknown'
}

/** Why and for how long, as the person said. */
function cancellation(events: readonly IncidentEvent[]): { reason: string; untilSeconds?: number } {
  const request = events.findLast((event) => event.kind === 'commented' && event.metadata.action === 'cancel_requested')
  if (request?.kind !== 'commented') return { reason: 'Cancelled' }
  const { text, until } = request.metadata
  if (!until) return { reason: text }
  return { reason: text, untilSeconds: Math.max(1, (Date.parse(until) - Date.now()) / 1000) }
}

type ActDeps = { db: Db; core: CorePort; environment: EnvironmentDefaults; patienceMs?: number }

export function actActivities(deps: ActDeps) {
  return {
    /**
     * Judges one proposed call and does what the ruling says. Its input is a place in the log; call, verdict and approval are
     * read from rows, and it acts on nothing its input claims. In one transaction: lock, fold, judge, `call_judged` and
     * `tool_started`; then the call is sent; then `tool_finished`. Found again after a crash, it goes on where the rows end.
     */
    async act(place: CallPlace & { approvalId: string | null }): Promise<Act> {
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

    /** Waits for what a write promised to become true, and records what became of it: `domain/envelope.ts`. */
    async verify(place: CallPlace): Promise<Act> {
      const signal = cancellationSignal()
      return await withHeartbeat(async () => {
        try {
          await assertOwnRun(deps.db, place)
          await verifyWrite(deps, place, signal)
          const finished = await eventOfCall(deps.db, place, 'tool_finished')
          return { kind: finished?.metadata.outcome === 'indeterminate' ? 'indeterminate' : 'next' }
        } catch (error) {
          if (error instanceof StaleRunError) return { kind: 'fenced' }
          throw error
        }
      })
    },

    /** The alerts ended, or a person stopped the run: true when the incident is closed now and the run is to end. */
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
  place: CallPlace & { approvalId: string | null },
  signal: AbortSignal,
): Promise<Act> {
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
  if (ruled.kind === 'prepare') throw new Error('calls to prepare were asked for twice')
  if (ruled.kind !== 'run') return ruled
  return outcomeOf(await send(deps, place, ruled.started, { again: ruled.again, signal }))
}

function outcomeOf(finished: IncidentEvent<'tool_finished'>): Act {
  const { effect, result } = finished.metadata
  if (effect === 'write') return { kind: 'verify' }
  if (effect === 'terminal' && result.ok) return { kind: 'closed' }
  return { kind: 'next' }
}

/** The call as it is to be judged: as the model proposed it, or as a person changed it before approving. */
async function effectiveCall(db: Db, place: CallPlace): Promise<EffectiveCall> {
  const proposed = await proposedCall(db, place)
  // A run started by hand names turns that no model took: there is nothing to act on.
  if (!proposed) throw new StaleRunError(place.incidentId, place.attempt, place.attempt)
  const { edit } = proposed
  if (!edit) return { ...proposed.call, edit: null }
  const { secret: _, ...call } = proposed.call
  return { ...call, arguments: edit.arguments, problem: null, edit: { ...edit, from: call.arguments } }
}

type Prepare = NonNullable<Tool['prepare']>

/** Asks the world what a write would do now, and waits for a core API that is away. What could not be read is the judge's to weigh. */
async function prepare(
  deps: ActDeps,
  place: CallPlace,
  call: ProposedCall,
  signal: AbortSignal,
): Promise<Call['prepared']> {
  const tool = tools.get(call.tool)
  if (!tool?.prepare || call.arguments === null || call.secret) return null
  const parsed = tool.input.safeParse(call.arguments)
  if (!parsed.success) return null
  // Prepared is what will be judged: names stand for what was looked up under them.
  const { db } = deps
  const state = fold(await eventsOf(db, place.incidentId, { attempt: place.attempt }), place.attempt)
  const settled = resolveArguments(tool, parsed.data, state, Date.parse(await databaseTime(db)))
  try {
    const ask = () => (tool.prepare as Prepare)(settled.arguments, toolContext(deps, place, signal))
    const note = (away: WaitedFor | null) => noteWait(db, place, away)
    return { ok: true, preparation: await retryWhileAway(ask, { forMs: deps.patienceMs ?? patienceMs, signal, note }) }
  } catch (error) {
    if (signal.aborted || isTransient(error)) throw error
    const reason = error instanceof ProposalError ? error.message : 'what it would do could not be read'
    return { ok: false, reason }
  }
}

/** The calls behind the one that asks, prepared in one try each: what cannot be read now is asked about when its turn comes. */
async function prepareLater(
  deps: ActDeps,
  place: CallPlace,
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
