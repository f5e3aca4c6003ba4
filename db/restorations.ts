import { sql } from 'kysely'
import { formatMinute } from '../domain/format.ts'
import { onceNow } from './clock.ts'
import type { Db } from './connect.ts'
import { recordAudit } from './log/audit.ts'

export type Restoration = { backupAt: string; restoredAt: string }

/**
 * Records, in the role of the owner, that the database was restored from a backup. Ends the
 * standing grants, because it is unknown how often they were used since the backup. Returns how
 * many grants were ended.
 */
export async function noteRestoration(owner: Db, backupAt: string): Promise<number> {
  return await owner.transaction().execute(async (trx) => {
    await sql`insert into restoration (backup_at) values (${backupAt}::timestamptz)`.execute(trx)
    const of = `the backup of ${formatMinute(backupAt)} was restored`
    const detail = `${of}: later changes are not in this database`
    await recordAudit(trx, { who: 'restore', what: 'platform.restored', subject: 'database', detail })
    const { rows: ended } = await sql<{ id: string }>`
      update standing_grant set revoked_at = nightshift_now() where revoked_at is null returning id`.execute(trx)
    for (const { id } of ended)
      await recordAudit(trx, { who: 'restore', what: 'grant.revoked', subject: id, detail: `Ended: ${of}` })
    return ended.length
  })
}

/** Finds a restoration of the database within the last hours; null if there was none. */
export async function lateRestoration(db: Db, hours: number): Promise<Restoration | null> {
  const row = await db
    .selectFrom('restoration')
    .select(['backupAt', 'restoredAt'])
    .where('restoredAt', '>', sql<string>`${onceNow} - make_interval(hours => ${hours})`)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row ?? null
}
