import { sql } from 'kysely'
import type { Findings } from '../../domain/chain.ts'
import { sha256 } from '../../domain/digest.ts'
import type { Db, Trx } from '../connect.ts'
import { takeNotes } from './findings.ts'
import { inSnapshot } from './incident.ts'

type Erased = { ofTable: string; rowId: string; hash: string; digest: string }
type StoredErasure = { id: number; operatorId: string; pseudonym: string; told: string[] }

/**
 * Compares every erasure: an audit entry of its transaction must have the digest of exactly its
 * tombstones. A tombstone is compared together with the chain of its row.
 */
export async function verifyErasures(db: Db | Trx): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    const { rows: erasures } = await sql<StoredErasure>`
      select id, operator_id, pseudonym,
        array(select detail from audit where audit.tx = erasure.tx and what = 'retention.erased' and subject = erasure.id::text) as told
      from erasure order by id`.execute(trx)
    for (const erasure of erasures) {
      notes.check('erasures')
      const { rows } = await sql<Erased>`
        select of_table, row_id::text, hash, digest from erased_row where erasure_id = ${erasure.id}
        order by of_table collate "C", erased_row.row_id`.execute(trx)
      if (erasure.told.length !== 1 || erasure.told[0] !== wordsOf(erasure, rows))
        notes.differ(`erasure ${erasure.id}`, 'no row of the audit has the digest of its tombstones')
    }
    const { rows: lost } = await sql<{ subject: string }>`
      select subject from audit where what = 'retention.erased'
        and not exists (select from erasure where erasure.id::text = audit.subject)`.execute(trx)
    for (const { subject } of lost)
      notes.differ(`erasure ${subject}`, 'the audit has a row of this erasure, and the erasure is missing')
    const { differences, checked, untold } = notes
    return { differences, checked, untold }
  })
}

/**
 * Returns the audit entry that the database function `erase_person` must have written for an
 * erasure.
 */
function wordsOf({ operatorId, pseudonym }: StoredErasure, rows: readonly Erased[]): string {
  const text = rows.map(({ ofTable, rowId, hash, digest }) => `${ofTable} ${rowId} ${hash} ${digest}`).join(',')
  return `${operatorId} became ${pseudonym} in ${rows.length} rows of chains: ${sha256(text)}`
}
