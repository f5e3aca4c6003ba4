import { cancellationSignal } from '@temporalio/activity'
import type { Db } from '../db/connect.ts'
import { eventsOf } from '../db/events.ts'
import { closeIncident, lockIncident } from '../db/incidents.ts'
import { agentActor, type IncidentEvent } from '../domain/event.ts'
import type { CorePort } from '../domain/tool.ts'
import { fold } from '../safety/fold.ts'
import type { Interruption } from '../workflows/outcome.ts'
import { lookOnce, verifyWrite } from './verify.ts'

/**
 * Ends a run before its model does. Cancelled: one look at what was written, then closed. Alerts ended: before any write the
 * incident resolved itself; after one, its verification is finished first and the run goes on to say what it repaired.
 * Answers whether the incident is closed.
 */
export async function endEarly(
  deps: { db: Db; core: CorePort },
  input: { incidentId: string; attempt: number; turn: number; why: Interruption },
): Promise<boolean> {
  const { db } = deps
  const { incidentId, attempt, why } = input
  const state = fold(await eventsOf(db, incidentId, { attempt }), attempt)
  if (why === 'cancel') {
    await lookOnce(deps, { incidentId, attempt })
    await db.transaction().execute(async (trx) => {
      await closeIncident(
        trx,
        incidentId,
        attempt,
        { status: 'cancelled', reason: cancelReason(await eventsOf(trx, incidentId)) },
        { actor: agentActor, stepKey: null },
      )
    })
    return true
  }
  if (state.writes.length > 0) {
    const started = state.open
      ? (await eventsOf(db, incidentId)).find((event) => event.seq === state.open?.startedSeq)
      : null
    if (started) {
      const call = Number(state.open?.callId.split('_')[1] ?? 0)
      await verifyWrite(deps, { incidentId, attempt, turn: started.turn ?? 0, call }, cancellationSignal())
    }
    return false
  }
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    const firing = await trx
      .selectFrom('alert')
      .select('id')
      .where('incidentId', '=', incidentId)
      .where('status', '=', 'firing')
      .limit(1)
      .executeTakeFirst()
    // It fired again meanwhile: there is something to investigate after all.
    if (firing || !row) return false
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

function cancelReason(events: readonly IncidentEvent[]): string {
  const request = events.findLast((event) => event.kind === 'commented' && event.metadata.action === 'cancel_requested')
  if (request?.kind !== 'commented') return 'Cancelled through Temporal'
  return request.metadata.text
}
