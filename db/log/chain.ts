import { sql } from 'kysely'
import type { LogChain } from '../../domain/chain.ts'
import type { Db, Trx } from '../connect.ts'
import { hashEvent } from './append.ts'
import { erasedAmong } from './erased.ts'
import { eventsOf } from './events.ts'

/**
 * Recomputes the chain of an incident: numbers from 1 without gaps, each hash correct and chained
 * to the previous hash, and the head equal to the last hash. A row from which the name of an erased
 * person was removed is verified by its tombstone. `expectedHead` (from a webhook or the result of
 * a workflow) proves that no rows were cut off at the end.
 */
export async function verifyChain(db: Db | Trx, incidentId: string, expectedHead?: string): Promise<LogChain | null> {
  const head = await db
    .selectFrom('incident')
    .select(['headHash', 'nextSeq'])
    .where('id', '=', incidentId)
    .executeTakeFirst()
  if (!head) return null
  const rows = await eventsOf(db, incidentId)
  const erased = await erasedAmong(db, 'incident_event', sql`stored.incident_id = ${incidentId}`)
  let previous = ''
  const report = (problem: LogChain['problem']): LogChain => ({
    ok: problem === null,
    events: rows.length,
    headHash: head.headHash,
    problem,
  })
  for (const [index, row] of rows.entries()) {
    if (row.seq !== index + 1) return report({ seq: index + 1, what: `row ${index + 1} is missing` })
    if (row.prevHash !== previous) return report({ seq: row.seq, what: 'the row is not chained to the row before' })
    const gone = erased.get(row.id)
    const isHeld = gone ? gone.isAsErased && gone.hash === row.hash : hashEvent(row) === row.hash
    if (!isHeld)
      return report({
        seq: row.seq,
        what: `the content of the row differs from ${gone ? 'what an erasure left' : 'its hash'}`,
      })
    previous = row.hash
  }
  if (head.headHash !== previous || head.nextSeq !== rows.length + 1) {
    return report({ seq: rows.length + 1, what: 'rows are missing at the end: the incident names a newer row' })
  }
  if (expectedHead !== undefined && !rows.some((row) => row.hash === expectedHead)) {
    return report({ seq: rows.length, what: `no row has the earlier hash ${expectedHead}` })
  }
  return report(null)
}
