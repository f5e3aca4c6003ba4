import { sql } from 'kysely'
import type { Db, Trx } from '../connect.ts'

type Chained = 'incident_event' | 'audit'

/**
 * Finds rows of a chain in which data was erased. Returns for each row its newest tombstone, as
 * `<hash> <digest>`, and its current content as such a text. The row is verified by its digest,
 * because the text that the hash covers is gone.
 */
export async function erasedAmong(
  db: Db | Trx,
  table: Chained,
  where: ReturnType<typeof sql>,
): Promise<Map<string, { hash: string; isAsErased: boolean }>> {
  const { rows } = await sql<{ id: string; hash: string; isAsErased: boolean }>`
    select distinct on (stored.id) stored.id::text as id, gone.hash, erased_digest(to_jsonb(stored)) = gone.digest as is_as_erased
    from ${sql.table(table)} as stored
    join erased_row as gone on gone.of_table = ${table} and gone.row_id = stored.id
    where ${where}
    order by stored.id, gone.erasure_id desc`.execute(db)
  return new Map(rows.map(({ id, hash, isAsErased }) => [id, { hash, isAsErased }]))
}
