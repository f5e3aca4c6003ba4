import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import type { Db } from './connect.ts'

/**
 * Returns an id of this installation for other systems: the time of the first migration of its
 * database, which backups and restores keep. Null before any migration.
 */
export async function siteId(db: Db): Promise<string | null> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass('kysely_migration') is not null as there`.execute(
    db,
  )
  if (!rows[0]?.there) return null
  const first = await sql<{ began: string }>`
    select name || ' ' || timestamp as began from kysely_migration order by name limit 1`.execute(db)
  const [row] = first.rows
  return row ? sha256(row.began).slice(0, 16) : null
}
