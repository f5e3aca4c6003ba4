import { sql } from 'kysely'
import type { InventoryImport, SiteChange, SiteFault } from '../../domain/site.ts'
import { cleanse } from '../../safety/redact.ts'
import { now, onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'

/** Rows about the import of large inventory files: how far an import has come, and how it ended. */

/** Seconds of silence after which an importing process counts as dead. It reports often. */
const silentSeconds = 30
const keptDays = 30

/**
 * Begins an import. Only one import runs at a time over all processes, because an import takes a
 * thread and up to a gigabyte. `known`: an import with this id has already begun.
 */
export async function beginImport(
  db: Db,
  begun: { id: string; who: string; isDryRun: boolean; entries: number },
): Promise<'begun' | 'known' | 'busy'> {
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('inventory_import', 0))`.execute(trx)
    const { rows } = await sql<{ id: string }>`
      select id from inventory_import where id = ${begun.id}
        or (state = 'running' and seen_at >= ${onceNow} - make_interval(secs => ${silentSeconds}))`.execute(trx)
    if (rows.some(({ id }) => id === begun.id)) return 'known'
    if (rows.length > 0) return 'busy'
    await trx.insertInto('inventoryImport').values(begun).execute()
    await sql`delete from inventory_import where ended_at < ${onceNow} - make_interval(days => ${keptDays})`.execute(
      trx,
    )
    return 'begun'
  })
}

/** Records the progress of an import. */
export async function noteImport(db: Db, id: string, at: { step: string; done: number; total: number }): Promise<void> {
  await db
    .updateTable('inventoryImport')
    .set({ ...at, seenAt: now })
    .where('id', '=', id)
    .where('state', '=', 'running')
    .execute()
}

type ImportEnd = { change: SiteChange } | { reason: string; faults: readonly SiteFault[] }

/** Records the end of an import in its transaction, so that row and inventory agree. */
export async function endImport(db: Db | Trx, id: string, end: ImportEnd): Promise<void> {
  const said =
    'change' in end
      ? { state: 'done' as const, change: JSON.stringify(end.change) }
      : { state: 'failed' as const, reason: cleanse(end.reason), faults: JSON.stringify(cleanse(end.faults)) }
  await db
    .updateTable('inventoryImport')
    .set({ ...said, seenAt: now, endedAt: now })
    .where('id', '=', id)
    .where('state', '=', 'running')
    .execute()
}

export async function showImport({ db }: Scope, id: string): Promise<InventoryImport | null> {
  const row = await db
    .selectFrom('inventoryImport')
    .selectAll()
    .select(
      sql<boolean>`state = 'running' and seen_at < ${onceNow} - make_interval(secs => ${silentSeconds})`.as('isLost'),
    )
    .where('id', '=', id)
    .executeTakeFirst()
  if (!row) return null
  const { entries, step, done, total, change, reason, faults, createdAt, endedAt } = row
  return {
    id,
    state: row.isLost ? 'lost' : row.state,
    ...{ entries, step, done, total, change, createdAt, endedAt },
    applied: row.state === 'done' && !row.isDryRun,
    reason: row.isLost ? 'The process of the import ended. Nothing was stored: import the file again.' : reason,
    faults: faults ?? [],
  }
}
