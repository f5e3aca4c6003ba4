import { sql } from 'kysely'
import type { Findings } from '../../domain/chain.ts'
import { sha256 } from '../../domain/digest.ts'
import type { Db, Trx } from '../connect.ts'
import { takeNotes } from './findings.ts'
import { inSnapshot } from './incident.ts'

type Tombstone = { incidentId: string; rows: number; headHash: string; closedAt: string; isThere: boolean }
type Removal = { id: number; rule: string; before: string; told: string[]; tombstones: Tombstone[] }

/** Number of removals in one step. They have about ten thousand tombstones. */
const stepSize = 200

/**
 * Verifies the removals after the removal number `after`: an audit entry of a removal's transaction
 * must have the digest of exactly its tombstones, and everything with a tombstone must be gone.
 * Returns the last removal; null at the end.
 */
export async function verifyRemovals(db: Db | Trx, after: number): Promise<Findings & { last: number | null }> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    const removals = await removalsAfter(trx, after)
    for (const removal of removals) {
      notes.check('removals')
      notes.check('tombstones', removal.tombstones.length)
      const isTold = removal.told.length === 1 && removal.told[0] === wordsOf(removal)
      if (!isTold)
        notes.differ(
          `removal ${removal.id}`,
          removal.told.length === 0
            ? 'no row of the audit has this removal'
            : 'its tombstones differ from the digest in the audit',
        )
      for (const { incidentId, isThere } of removal.tombstones)
        if (isThere) notes.differ(incidentId, `it has a tombstone of removal ${removal.id}, and still exists`)
    }
    const last = removals.length < stepSize ? null : (removals.at(-1)?.id ?? null)
    const { differences, checked, untold } = notes
    return { differences, checked, untold, last }
  })
}

/**
 * Finds incidents that only the audit log names, and incidents that are gone without a tombstone.
 */
export async function verifyGone(db: Db | Trx): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    const { rows: untold } = await sql<{ subject: string }>`
      select subject from audit where what = 'retention.removed'
        and not exists (select from removal where removal.id::text = audit.subject)`.execute(trx)
    for (const { subject } of untold)
      notes.differ(`removal ${subject}`, 'the audit has a row of this removal, and its tombstones are missing')
    const { rows: missing } = await sql<{ rowKey: string }>`
      select distinct row_key from row_change
      where of_table = 'incident' and not exists (select from incident where id = row_key)`.execute(trx)
    for (const { rowKey } of missing)
      notes.differ(rowKey, 'the incident is missing, and no record shows that retention removed it')
    const { differences, checked } = notes
    return { differences, checked, untold: {} }
  })
}

async function removalsAfter(trx: Trx, after: number): Promise<Removal[]> {
  const { rows: removals } = await sql<Omit<Removal, 'tombstones'>>`
    select id, rule, to_char(before at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as before,
      array(select detail from audit where audit.tx = removal.tx and what = 'retention.removed' and subject = removal.id::text) as told
    from removal where id > ${after} order by id limit ${stepSize}`.execute(trx)
  const ids = removals.map(({ id }) => id)
  const { rows: tombstones } = await sql<Tombstone & { removalId: number }>`
    select removal_id, incident_id, rows, head_hash,
      to_char(closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as closed_at,
      exists (select from incident where id = incident_id) as is_there
    from removed_incident where removal_id = any(${ids}::bigint[]) order by incident_id collate "C"`.execute(trx)
  const of = Map.groupBy(tombstones, ({ removalId }) => removalId)
  return removals.map((removal) => ({ ...removal, tombstones: of.get(removal.id) ?? [] }))
}

/**
 * Returns the audit entry that the database function `remove_closed_incidents` must have written
 * for a removal.
 */
function wordsOf({ rule, before, tombstones }: Removal): string {
  const text = tombstones.map((each) => `${each.incidentId} ${each.rows} ${each.headHash} ${each.closedAt}`).join(',')
  return `${tombstones.length} incidents that closed before ${before}, by ${rule}: ${sha256(text)}`
}
