import type { Db } from './connect.ts'

export async function typeOfIncident(db: Db, id: string): Promise<string | null> {
  const row = await db.selectFrom('incident').select('type').where('id', '=', id).executeTakeFirst()
  return row?.type ?? null
}

export async function typeOfApproval(db: Db, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('approval')
    .innerJoin('incident', 'incident.id', 'approval.incidentId')
    .select('incident.type')
    .where('approval.id', '=', id)
    .executeTakeFirst()
  return row?.type ?? null
}
