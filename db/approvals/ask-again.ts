import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { investigateAgain } from '../incidents/person-requests.ts'

/** A time that passed while nothing ran is still kept for so long; an older one asks nobody. */
const keptHours = 24

/**
 * Has incidents investigated again once a "not now" is over: the agent looks, and asks only where
 * the action is still needed. Leaves alone what a person ended or took, and what was investigated
 * since. Answers how many it was.
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

/** A change by a person's hand is never the agent's to look into. */
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
