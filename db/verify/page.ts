import type { Findings, VerifiedPage } from '../../domain/chain.ts'
import { addFindings, noFindings } from '../../domain/findings.ts'
import type { Db } from '../connect.ts'
import { incidentIdsAfter } from '../incidents/incidents.ts'
import { verifyErasures } from './erasures.ts'
import { verifyGrants } from './grants.ts'
import { verifyIncident } from './incident.ts'
import { verifyGone, verifyRemovals } from './removals.ts'
import { verifyChanges, verifyKept } from './row-changes.ts'

type Numbered = { cursor: string; verify(db: Db, after: number): Promise<Findings & { last: number | null }> }

/** Kinds of rows that are verified page by page after the incidents, in this order. */
const numbered: Numbered[] = [
  { cursor: 'changes~', verify: verifyChanges },
  { cursor: 'removals~', verify: verifyRemovals },
]

/** Kinds of rows that are verified once, after the last page, in their current state. */
const atOnce = [verifyErasures, verifyGone, verifyKept, verifyGrants]

/**
 * Verifies the next part of all rows that are compared with logs and audit log, except the chain of
 * the audit log itself: first incidents, page by page, then numbered rows. `nextCursor`: where to
 * continue; null after the last page. The API returns pages, and a restore reads all pages.
 */
export async function verifyNext(db: Db, cursor: string, limit: number): Promise<VerifiedPage> {
  const found = noFindings()
  const at = numbered.findIndex(({ cursor: prefix }) => cursor.startsWith(prefix))
  if (at >= 0) {
    const after = Number(cursor.slice((numbered[at] as Numbered).cursor.length)) || 0
    return { incidents: 0, events: 0, nextCursor: await holdNumbered(db, at, after, found), ...found }
  }
  const ids = await incidentIdsAfter(db, cursor, limit)
  let events = 0
  for (const id of ids) {
    const { events: rows, ...verified } = await verifyIncident(db, id)
    events += rows
    addFindings(found, verified)
  }
  const nextCursor = ids.length === limit ? (ids.at(-1) as string) : await holdNumbered(db, 0, 0, found)
  return { incidents: ids.length, events, nextCursor, ...found }
}

/** Continues the list from this place. Returns the place of its stop, or null at the end. */
async function holdNumbered(db: Db, from: number, after: number, found: Findings): Promise<string | null> {
  let start = after
  for (const { cursor, verify } of numbered.slice(from)) {
    const { last, ...more } = await verify(db, start)
    addFindings(found, more)
    if (last !== null) return `${cursor}${last}`
    start = 0
  }
  for (const verify of atOnce) addFindings(found, await verify(db))
  return null
}
