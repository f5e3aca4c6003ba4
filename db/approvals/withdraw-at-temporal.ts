import { systemActor } from '../../domain/event.ts'
import type { RunRef } from '../../domain/step-key.ts'
import type { Db } from '../connect.ts'
import { closeIncident } from '../incidents/close-incident.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import { withdrawPending } from './settle.ts'

const text = 'Withdrawn at Temporal: somebody who may signal this run denied without a decision token'

/**
 * Handles a denial at Temporal without a token. Withdraws the questions of the run and escalates
 * the incident to people, because a person who may signal a run may also terminate it. The denial
 * does not count as a vote. Runs once per run; false if no question is pending.
 */
export async function withdrawAtTemporal(db: Db, { incidentId, attempt }: RunRef): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.attempt !== attempt || row.status !== 'awaiting_approval') return false
    const pending = await trx
      .selectFrom('approval')
      .select('id')
      .where('incidentId', '=', incidentId)
      .where('attempt', '=', attempt)
      .where('status', '=', 'pending')
      .execute()
    if (pending.length === 0) return false
    await withdrawPending(trx, incidentId, 'withdrawn at Temporal')
    const metadata = { code: 'withdrawn_at_temporal' as const, text }
    await append(trx, incidentId, attempt, { kind: 'noted', actor: systemActor, detail: text, metadata })
    const closing = {
      status: 'escalated',
      code: 'WITHDRAWN_AT_TEMPORAL',
      reason: `${text}. Nothing was done.`,
    } as const
    return await closeIncident(trx, incidentId, attempt, closing, { actor: systemActor, stepKey: null })
  })
}
