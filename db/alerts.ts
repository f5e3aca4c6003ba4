import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'
import type { AlertRow } from './tables.ts'
import { onceNow } from './time.ts'

export async function alertsOf(db: Db | Trx, incidentId: string): Promise<AlertRow[]> {
  return await db
    .selectFrom('alert')
    .selectAll()
    .where('incidentId', '=', incidentId)
    .orderBy('startsAt')
    .limit(50)
    .execute()
}

/** Alerts as they were taken in, newest first. */
export async function listAlerts(
  db: Db,
  filter: { status?: AlertRow['status']; source?: string; q?: string },
  page: { before: string | null; limit: number },
): Promise<AlertRow[]> {
  let query = db.selectFrom('alert').selectAll().orderBy('id', 'desc').limit(page.limit)
  if (filter.status) query = query.where('status', '=', filter.status)
  if (filter.source) query = query.where('source', '=', filter.source)
  if (filter.q) {
    const pattern = `%${filter.q.replace(/[\\%_]/g, (character) => `\\${character}`)}%`
    query = query.where((where) =>
      where.or([
        where('name', 'ilike', pattern),
        where('fingerprint', 'ilike', pattern),
        where(sql<string>`raw->>'title'`, 'ilike', pattern),
      ]),
    )
  }
  if (page.before) query = query.where('id', '<', page.before)
  return await query.execute()
}

/** How long an ended alert still counts as active. */
const retentionSeconds = 300

/** Alerts firing now, or ended within 300 s, whose labels name the resource. */
export async function activeAlerts(db: Db, resourceId: string): Promise<AlertRow[]> {
  return await db
    .selectFrom('alert')
    .selectAll()
    .where((where) =>
      where.or([
        where('status', '=', 'firing'),
        where.and([
          where('status', '=', 'resolved'),
          where('endsAt', '>', sql<string>`${onceNow} - make_interval(secs => ${retentionSeconds})`),
        ]),
      ]),
    )
    .where(
      sql<boolean>`${resourceId} in (labels->>'shard', labels->>'node', labels->>'tenant', labels->>'host', labels->>'vm', labels->>'instance')`,
    )
    .orderBy('startsAt', 'desc')
    .limit(50)
    .execute()
}
