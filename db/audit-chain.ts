import { sql } from 'kysely'
import { sha256 } from '../domain/digest.ts'
import type { Db } from './connect.ts'

const batch = 1000

export type AuditChainReport = {
  ok: boolean
  rows: number
  headHash: string
  /** The first thing that does not fit, and at which number. */
  problem: { seq: number; what: string } | null
}

type Chained = {
  seq: number
  at: string
  who: string
  what: string
  subject: string
  detail: string
  address: string | null
  prevHash: string
  hash: string
}

/**
 * Recomputes the audit's chain: numbers dense from 1, each hash right and chained to the one before, the head equal to the last.
 * The owner of the database can rewrite a tail and chain it again: `expectedHead`, a hash that somebody noted elsewhere before,
 * must still be in it.
 */
export async function verifyAudit(db: Db, expectedHead?: string): Promise<AuditChainReport> {
  // The head first: a row that comes after it is no missing one.
  const head = await db.selectFrom('auditHead').select(['seq', 'hash']).executeTakeFirst()
  if (!head) return { ok: false, rows: 0, headHash: '', problem: { seq: 0, what: 'the head of the audit is missing' } }
  const { last, seen, problem } = await followChain(db, expectedHead)
  const report = (found: AuditChainReport['problem']) => ({
    ...{ ok: found === null, rows: last.seq, headHash: last.hash, problem: found },
  })
  if (problem) return report(problem)
  if (last.seq < head.seq)
    return report({ seq: last.seq + 1, what: 'rows are missing at the end: the head names a newer one' })
  if (!seen) return report({ seq: last.seq, what: `no row has the hash ${expectedHead} that was handed out` })
  return report(null)
}

async function followChain(db: Db, expectedHead: string | undefined) {
  let last = { seq: 0, hash: '' }
  let seen = expectedHead === undefined
  for (;;) {
    const rows: Chained[] = await sql<Chained>`
      select seq, at, who, what, subject, detail, address, prev_hash, hash from audit
      where seq > ${last.seq} order by seq limit ${batch}`
      .execute(db)
      .then(({ rows }) => rows)
    for (const row of rows) {
      const what = flawOf(row, last)
      if (what) return { last, seen, problem: { seq: last.seq + 1, what } }
      last = { seq: row.seq, hash: row.hash }
      seen ||= row.hash === expectedHead
    }
    if (rows.length < batch) return { last, seen, problem: null }
  }
}

function flawOf(row: Chained, last: { seq: number; hash: string }): string | null {
  if (row.seq !== last.seq + 1) return `row ${last.seq + 1} is missing`
  if (row.prevHash !== last.hash) return 'it is not chained to the row before it'
  if (hashAudit(row) !== row.hash) return 'its content is not what was hashed'
  return null
}

/** SHA-256 over the fields, each with its length in bytes in front: what `audit_hash` of the database says when a row is added. */
export function hashAudit(row: Omit<Chained, 'hash'>): string {
  const { seq, at, who, what, subject, detail, address, prevHash } = row
  const fields = [String(seq), at, who, what, subject, detail, address, prevHash]
  return sha256(fields.map((field) => (field === null ? '-' : `${Buffer.byteLength(field)}:${field}`)).join(','))
}
