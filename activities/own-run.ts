import { activityInfo } from '@temporalio/activity'
import { StaleRunError } from '../db/append.ts'
import type { Db } from '../db/connect.ts'
import { lockIncident } from '../db/incidents.ts'
import { recordSecurityEvent } from '../db/security-events.ts'
import type { Run } from './step-key.ts'

/** The workflow this activity runs for, as Temporal says it: no input can claim to be another. */
export function ownWorkflowId(): string {
  return activityInfo().workflowExecution?.workflowId ?? 'none'
}

/**
 * Lets only the incident's own run through, and tells whether the incident is still being worked on. Whoever starts a workflow
 * by hand with somebody else's arguments gets StaleRunError and leaves a `security_event`; so does, without the event, a run
 * that was superseded.
 */
export async function assertOwnRun(db: Db, run: Run): Promise<'working' | 'closed'> {
  const row = await db
    .selectFrom('incident')
    .select(['assignedTo', 'attempt'])
    .where('id', '=', run.incidentId)
    .executeTakeFirst()
  const own = ownWorkflowId()
  const named = own === `investigate:${run.incidentId}:${run.attempt}`
  if (named && row?.attempt === run.attempt && (row.assignedTo === own || row.assignedTo === null)) {
    return row.assignedTo === null ? 'closed' : 'working'
  }
  if (!named) await recordForgery(db, run, own)
  throw new StaleRunError(run.incidentId, run.attempt, row?.attempt ?? 0)
}

async function recordForgery(db: Db, run: Run, workflowId: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, run.incidentId)
    // An older attempt that is still winding down is late, not forged.
    if (!row || workflowId.startsWith(`investigate:${run.incidentId}:`)) return
    await recordSecurityEvent(trx, run.incidentId, {
      code: 'FORGED_RUN',
      door: 'workflow',
      subject: workflowId.slice(0, 100).toWellFormed(),
      detail: 'a workflow that does not hold this incident tried to work on it',
    })
  })
}
