import { sql } from 'kysely'
import type { Findings } from '../../domain/chain.ts'
import { sha256 } from '../../domain/digest.ts'
import type { Db, Trx } from '../connect.ts'
import { takeNotes } from './findings.ts'
import { inSnapshot } from './incident.ts'

type Tombstone = { incidentId: string; rows: number; headHash: string; closedAt: string; isThere: boolean }
type Removal = { id: number; rule: string; before: string; told: string[]; tombstones: Tombstone[] }

/** Removals a step: some ten thousand tombstones. */
const stepSize = 200

/**
 * Holds the next removals after this one: an audit row of the same transaction has the digest of
 * exactly these tombstones, and what has a tombstone is gone. Answers the last one; null where
 * there are no more.
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
            ? 'no row of the audit tells of it'
            : 'its tombstones are not those of which the audit has the digest',
        )
      for (const { incidentId, isThere } of removal.tombstones)
        if (isThere) notes.differ(incidentId, `it has a tombstone of removal ${removal.id}, and is there`)
    }
    const last = removals.length < stepSize ? null : (removals.at(-1)?.id ?? null)
    const { differences, checked, untold } = notes
    return { differences, checked, untold, last }
  })
}

/** Incidents that the audit tells of and nothing is left of; and those gone without a tombstone. */
export async function verifyGone(db: Db | Trx): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    const { rows: untold } = await sql<{ subject: string }>`
      select subject from audit where what = 'retention.removed'
        and not exists (select from removal where removal.id::text = audit.subject)`.execute(trx)
    for (const { subject } of untold)
      notes.differ(`removal ${subject}`, 'the audit tells of it, and its tombstones are missing')
    const { rows: missing } = await sql<{ rowKey: string }>`
      select distinct row_key from row_change
      where of_table = 'incident' and not exists (select from incident where id = row_key)`.execute(trx)
    for (const { rowKey } of missing)
      notes.differ(rowKey, 'the incident is missing: nothing says that retention removed it')
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

/** The audit row of a removal, as the database's `remove_closed_incidents` writes it. */
function wordsOf({ rule, before, tombstones }: Removal): string {
  const text = tombstones.map((each) => `${each.incidentId} ${each.rows} ${each.headHash} ${each.closedAt}`).join(',')
  return `${tombstones.length} incidents that closed before ${before}, by ${rule}: ${sha256(text)}`
}
