import { systemActor } from '../../domain/event.ts'
import type { RunRef } from '../../domain/step-key.ts'
import type { Db } from '../connect.ts'
import { closeIncident } from '../incidents/close-incident.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import { withdrawPending } from './settle.ts'

const text = 'Withdrawn at Temporal: somebody who may signal this run denied without a decision token'

/**
 * A denial without a token: a person who may signal a run may also terminate it, so its questions
 * are withdrawn and a person gets the incident. It counts as no vote. Once a run; false where
 * nothing of it waits.
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
