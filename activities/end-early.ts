import { cancellationSignal } from '@temporalio/activity'
import type { Db } from '../db/connect.ts'
import { type Closing, closeIncident } from '../db/incidents/close-incident.ts'
import { lockIncident, toIncident } from '../db/incidents/incidents.ts'
import { handOver } from '../db/incidents/owners.ts'
import { stopRequest, takeoverRequest } from '../db/incidents/stop-requests.ts'
import { lifecycleRules, lifecycleView } from '../db/lifecycle/read-lifecycle.ts'
import { recordSecurityEvent } from '../db/log/audit.ts'
import { eventsOf } from '../db/log/events.ts'
import { readSettings } from '../db/settings.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import { isQuiet, quietProof } from '../domain/lifecycle.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { parseCallId } from '../domain/step-key.ts'
import type { CorePort } from '../domain/tool.ts'
import { fold, type SafetyState } from '../safety/fold.ts'
import type { Interruption } from '../workflows/outcome.ts'
import { lookOnce, verifyWrite } from './verify-write.ts'

/**
 * Ends a run before its model ends it. If a person stopped the run, reads the state of the last
 * write once, and closes the incident. If the alerts ended before any write, closes the incident as
 * resolved by itself. After a write, finishes the verification and lets the model report the
 * repair. Returns whether the incident is closed.
 */
export async function endEarly(
  deps: { db: Db; core: CorePort },
  input: { incidentId: string; attempt: number; turn: number; why: Interruption },
): Promise<boolean> {
  const { db } = deps
  const { incidentId, attempt, why } = input
  const events = await eventsOf(db, incidentId, { attempt })
  const state = fold(events, attempt)
  if (why !== 'alert_resolved') return await stop(deps, input)
  // Keeps the model's ending: the model ended the incident, and the run only waits until the alerts
  // stay quiet.
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
    // Continues if an alert fired again or the alerts were not over for long enough, because there
    // may be a problem left.
    if (!isQuiet(view, lifecycleRules(settings, row.type)) || isKnownIll(state, toIncident(row).resource)) return false
    const proof = quietProof(view)
    if (proof === 'nothing') return false
    await closeIncident(
      trx,
      incidentId,
      attempt,
      {
        status: 'resolved',
        outcome: 'self_resolved',
        resolution:
          proof === 'ends'
            ? 'Every alert of this incident ended by itself before anything was written'
            : 'The resource was nominal before anything was written, and it is not known whether the alert ended',
        claims: [],
        confidence: null,
      },
      { actor: agentActor, stepKey: null },
    )
    return true
  })
}

/**
 * Ends a run if a row shows that a person requested it. A stop signal without a row ends nothing,
 * and leaves a `security_event`. A run that was cancelled in Temporal cannot continue, so a person
 * gets the incident.
 */
async function stop(
  deps: { db: Db; core: CorePort },
  { incidentId, attempt, why }: { incidentId: string; attempt: number; why: Interruption },
): Promise<boolean> {
  const { db } = deps
  const wish = await stopRequest(db, incidentId, attempt)
  if (wish === null && why === 'cancel') {
    await db.transaction().execute(async (trx) => {
      if (!(await lockIncident(trx, incidentId))) return
      const detail = 'a signal asked this run to stop, but no person did'
      await recordSecurityEvent(trx, incidentId, { code: 'FORGED_CANCEL', door: 'signal', subject: 'unknown', detail })
    })
    return false
  }
  await lookOnce(deps, { incidentId, attempt })
  await db.transaction().execute(async (trx) => {
    const taker = await takeoverRequest(trx, incidentId, attempt)
    if (taker) return await handOver(trx, incidentId, attempt, taker)
    const closing: Closing =
      wish === null
        ? {
            status: 'escalated',
            code: 'RUN_STOPPED',
            reason: 'The run was cancelled in Temporal, and no person requested that in Nightshift',
          }
        : { status: 'cancelled', ...cancellation(await eventsOf(trx, incidentId, { attempt })) }
    await closeIncident(trx, incidentId, attempt, closing, { actor: agentActor, stepKey: null })
  })
  return true
}

function keepsEnding(events: readonly IncidentEvent[]): boolean {
  // Ignores notes about the choice of a model, which are not about the ending.
  const last = events.findLast(
    (event) => event.kind === 'model_answered' || (event.kind === 'noted' && event.metadata.code !== 'model_route'),
  )
  return last?.kind === 'noted' && last.metadata.code === 'ending_kept'
}

/**
 * Whether a read of this attempt found the resource unhealthy, although its alert may have ended.
 */
function isKnownIll(state: SafetyState, resource: ResourceRef | null): boolean {
  const health = resource ? (state.looks.get(resourceKey(resource))?.health ?? null) : null
  return health !== null && health !== 'nominal' && health !== 'unknown'
}

/** Returns the person's reason, and for how long the incident stays cancelled. */
function cancellation(events: readonly IncidentEvent[]): { reason: string; untilSeconds?: number } {
  const request = events.findLast((event) => event.kind === 'commented' && event.metadata.action === 'cancel_requested')
  if (request?.kind !== 'commented') return { reason: 'Cancelled' }
  const { text, until } = request.metadata
  if (!until) return { reason: text }
  return { reason: text, untilSeconds: Math.max(1, (Date.parse(until) - Date.now()) / 1000) }
}
