import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'

export type MeshKeyRow = { id: string; publicKey: string; notAfter: string | null }

/**
 * Writes down with which key requests are signed from now on, and which one comes next. The key before it ends now: manifests that
 * are made from here on say so.
 */
export async function noteMeshKeys(
  trx: Trx,
  signing: { id: string; publicKey: string },
  next: { id: string; publicKey: string } | null,
): Promise<void> {
  for (const key of next ? [signing, next] : [signing]) {
    await trx
      .insertInto('meshKey')
      .values(key)
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute()
  }
  const current = await trx
    .selectFrom('meshKey')
    .select('id')
    .where('signingSince', 'is not', null)
    .where('notAfter', 'is', null)
    .execute()
  if (current.length === 1 && current[0]?.id === signing.id) return
  await trx
    .updateTable('meshKey')
    .set({ notAfter: sql`nightshift_now()` as never })
    .where('signingSince', 'is not', null)
    .where('notAfter', 'is', null)
    .where('id', '!=', signing.id)
    .execute()
  await trx
    .updateTable('meshKey')
    .set({ signingSince: sql`nightshift_now()` as never, notAfter: null })
    .where('id', '=', signing.id)
    .execute()
}

/** Keys that a manifest names: those in use, and those that ended in the last 30 days, with their end. */
export async function meshKeys(db: Db | Trx): Promise<MeshKeyRow[]> {
  return await db
    .selectFrom('meshKey')
    .select(['id', 'publicKey', 'notAfter'])
    .where((where) =>
      where.or([
        where('notAfter', 'is', null),
        where('notAfter', '>', sql<string>`nightshift_now() - interval '30 days'`),
      ]),
    )
    .orderBy('knownSince', 'desc')
    .limit(10)
    .execute()
}
