import { z } from '@hono/zod-openapi'
import type { Db } from '../../db/connect.ts'
import { incidentIdsAfter } from '../../db/incidents/incidents.ts'
import { verifyAudit } from '../../db/log/audit.ts'
import { verifyGrants } from '../../db/verify/grants.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import { verifyGone, verifyRemovals } from '../../db/verify/removals.ts'
import { verifyChanges, verifyKept } from '../../db/verify/row-changes.ts'
import { auditChain, type Findings, verifiedPage } from '../../domain/chain.ts'
import { addFindings, noFindings } from '../../domain/findings.ts'
import { endpoint } from '../http/endpoint.ts'
import { tag } from './audit.ts'
import { incidentId } from './examples.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/, 'is no hash of a row: 64 hexadecimal digits')

/** After the incidents come the changes that the database wrote down, by their numbers. */
const changesCursor = 'changes~'
/** Then removals, by theirs. */
const removalsCursor = 'removals~'

/** Holds the next changes after this one; after the last of them the rows as they are now. Answers where to go on. */
async function holdRows(db: Db, after: number, found: Findings): Promise<string | null> {
  const { last, ...changes } = await verifyChanges(db, after)
  addFindings(found, changes)
  if (last !== null) return `${changesCursor}${last}`
  return await holdRemovals(db, 0, found)
}

/** Holds the next removals after this one; after the last of them the rows as they are now. Answers where to go on. */
async function holdRemovals(db: Db, after: number, found: Findings): Promise<string | null> {
  const { last, ...removals } = await verifyRemovals(db, after)
  addFindings(found, removals)
  if (last !== null) return `${removalsCursor}${last}`
  addFindings(found, await verifyGone(db))
  addFindings(found, await verifyKept(db))
  addFindings(found, await verifyGrants(db))
  return null
}

export const verifyRoutes = [
  endpoint({
    method: 'get',
    path: '/verify',
    permission: 'audit',
    tag,
    summary: 'Rows that authority and evidence rest on, held against the log and the audit',
    description:
      'Of each incident of the page: its chain, and its row, alerts, approvals, votes and effects as stored against what its rows fold to. Then, 2,000 a page, the changes of people, tokens, grants, sources, settings, marks and devices, each of which has a row of the audit or of a log beside it; then what retention removed, whose tombstones a row of the audit has the digest of; the last page (`nextCursor` null) holds these rows as they are now. `untold`: rows of an older version do not say it, so they are neither fine nor altered.',
    query: z.object({
      limit: z.coerce.number().int().min(1).max(100).default(50),
      cursor: z.string().max(100).optional(),
    }),
    answer: verifiedPage,
    example: {
      incidents: 50,
      events: 1_843,
      nextCursor: incidentId,
      differences: [{ subject: incidentId, what: 'status is "open", the rows say "resolved"' }],
      checked: { incidents: 50, votes: 12 },
      untold: { votes: 3 },
    },
    async run({ query: { limit, cursor = '' } }, { db }) {
      const found = noFindings()
      if (cursor.startsWith(changesCursor)) {
        const nextCursor = await holdRows(db, Number(cursor.slice(changesCursor.length)) || 0, found)
        return { incidents: 0, events: 0, ...found, nextCursor }
      }
      if (cursor.startsWith(removalsCursor)) {
        const nextCursor = await holdRemovals(db, Number(cursor.slice(removalsCursor.length)) || 0, found)
        return { incidents: 0, events: 0, ...found, nextCursor }
      }
      const ids = await incidentIdsAfter(db, cursor, limit)
      let events = 0
      for (const id of ids) {
        const { events: rows, ...verified } = await verifyIncident(db, id)
        events += rows
        addFindings(found, verified)
      }
      const nextCursor = ids.length === limit ? (ids.at(-1) as string) : await holdRows(db, 0, found)
      return { incidents: ids.length, events, ...found, nextCursor }
    },
  }),
  endpoint({
    method: 'get',
    path: '/audit/verify',
    permission: 'audit',
    tag,
    summary: 'Recomputes the hash chain of the audit',
    description: 'With `head`, a hash that was noted before, it must still be in the chain.',
    query: z.object({ head: hash.optional() }),
    answer: auditChain,
    example: {
      ok: true,
      rows: 214,
      headHash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      problem: null,
    },
    run: ({ query: { head } }, { db }) => verifyAudit(db, head),
  }),
]
