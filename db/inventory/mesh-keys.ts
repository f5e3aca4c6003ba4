import { sql } from 'kysely'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { MeshKeyRow } from '../writes/device-calls.ts'

/**
 * Stores the key that signs requests from now on, and the key that follows it. All other keys end
 * now, even a key that was to follow and was never used. New manifests contain these changes.
 */
export async function noteMeshKeys(
  trx: Trx,
  signing: { id: string; publicKey: string },
  next: { id: string; publicKey: string } | null,
): Promise<void> {
  const storedKeys = () => trx.selectFrom('meshKey').selectAll().orderBy('id').execute()
  const before = JSON.stringify(await storedKeys())
  const kept = next ? [signing, next] : [signing]
  const ids = kept.map((key) => key.id)
  for (const key of kept) {
    await trx
      .insertInto('meshKey')
      .values(key)
      .onConflict((conflict) => conflict.column('id').doUpdateSet({ notAfter: null }))
      .execute()
  }
  await trx
    .updateTable('meshKey')
    .set({ notAfter: now })
    .where('notAfter', 'is', null)
    .where('id', 'not in', ids)
    .execute()
  await trx
    .updateTable('meshKey')
    .set({ signingSince: now })
    .where('id', '=', signing.id)
    .where('signingSince', 'is', null)
    .execute()
  if (JSON.stringify(await storedKeys()) === before) return
  const detail = `Requests are signed by ${signing.id}${next ? `, next by ${next.id}` : ''}`
  await recordAudit(trx, { who: 'start', what: 'device.keys_changed', subject: 'mesh', detail })
}

/**
 * Lists the keys for a manifest: keys in use, and keys that ended in the last 30 days, with their
 * end.
 */
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
