import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { investigateAgain } from '../incidents/person-requests.ts'

/**
 * Hours for which the time of a "not now" is still used if no process ran when it passed. An older
 * time is dropped.
 */
const keptHours = 24

/**
 * Starts new investigations of incidents after a "not now": the agent reads the state, and requests
 * the action only if it is still needed. Skips incidents that a person ended or took, or that were
 * investigated since. Returns how many investigations started.
 */
export async function askAgainDue(db: Db): Promise<number> {
  const due = await dueIncidents(db).execute()
  let begun = 0
  for (const { id } of due)
    await db.transaction().execute(async (trx) => {
      await lockIncident(trx, id)
      if (!(await dueIncidents(trx).where('incident.id', '=', id).executeTakeFirst())) return
      await investigateAgain(trx, id, { actor: systemActor, operatorId: null })
      begun += 1
    })
  return begun
}

/** Selects incidents whose "not now" has ended, except for a person's own writes. */
function dueIncidents(db: Db) {
  return db
    .selectFrom('incident')
    .select('incident.id')
    .distinct()
    .innerJoin('approval', 'approval.incidentId', 'incident.id')
    .innerJoin('approvalDecision', 'approvalDecision.approvalId', 'approval.id')
    .where('approvalDecision.askAgainAt', '<=', now)
    .where('approvalDecision.askAgainAt', '>', sql<string>`nightshift_now() - make_interval(hours => ${keptHours})`)
    .where('approval.status', '=', 'denied')
    .whereRef('approval.attempt', '=', 'incident.attempt')
    .where('incident.status', '=', 'escalated')
    .where('incident.type', '!=', manualChangeType)
    .where('incident.ownerId', 'is', null)
    .limit(100)
}
