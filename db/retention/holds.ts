import { newId } from '../../domain/digest.ts'
import type { IncidentHold } from '../../domain/retention.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'

type Person = { operatorId: string; name: string }

/**
 * Keeps an incident, whatever its age, until the hold is withdrawn. Null if the incident is already
 * held; `gone` if retention just removed it.
 */
export async function holdIncident(
  db: Db,
  incidentId: string,
  reason: string,
  by: Person,
): Promise<IncidentHold | 'gone' | null> {
  return await db.transaction().execute(async (trx) => {
    // Locks the incident, because retention may be removing it. If so, the row is gone once
    // retention's transaction has committed.
    const kept = await trx.selectFrom('incident').select('id').where('id', '=', incidentId).forKeyShare().execute()
    if (kept.length === 0) return 'gone'
    const made = await trx
      .insertInto('incidentHold')
      .values({ id: newId('hld'), incidentId, reason, heldBy: by.operatorId })
      .onConflict((conflict) => conflict.column('incidentId').where('endedAt', 'is', null).doNothing())
      .returningAll()
      .executeTakeFirst()
    if (!made) return null
    await recordAudit(trx, {
      who: by.name,
      what: 'incident.held',
      subject: made.id,
      detail: `${incidentId}: ${reason}`,
    })
    return { ...made, heldBy: by.name }
  })
}

/** Withdraws an incident's hold, so that its age matters again. Null if it is not held. */
export async function releaseIncident(db: Db, incidentId: string, reason: string, by: Person) {
  return await db.transaction().execute(async (trx) => {
    const ended = await trx
      .updateTable('incidentHold')
      .set({ endedAt: now, endedBy: by.operatorId })
      .where('incidentId', '=', incidentId)
      .where('endedAt', 'is', null)
      .returning('id')
      .executeTakeFirst()
    if (!ended) return null
    const detail = `${incidentId}: ${reason}`
    await recordAudit(trx, { who: by.name, what: 'incident.hold_ended', subject: ended.id, detail })
    return (await holdsWhere(trx, ended.id))[0] ?? null
  })
}

/** Lists held incidents, newest first. */
export async function listHolds({ db }: Scope): Promise<IncidentHold[]> {
  return await holdsWhere(db, null)
}

async function holdsWhere(db: Db, id: string | null): Promise<IncidentHold[]> {
  let query = db
    .selectFrom('incidentHold')
    .innerJoin('operator', 'operator.id', 'incidentHold.heldBy')
    .select(['incidentHold.id', 'incidentId', 'reason', 'operator.name as heldBy', 'heldAt', 'endedAt'])
    .orderBy('heldAt', 'desc')
    .limit(1_000)
  query = id === null ? query.where('endedAt', 'is', null) : query.where('incidentHold.id', '=', id)
  return await query.execute()
}
