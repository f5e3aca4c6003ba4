import { z } from '@hono/zod-openapi'
import { incidentIdsAfter } from '../../db/incidents/incidents.ts'
import { verifyAudit } from '../../db/log/audit.ts'
import { verifyGrants, verifyIncident } from '../../db/verify/incident.ts'
import { auditChain, type Difference, verifiedPage } from '../../domain/chain.ts'
import { endpoint } from '../http/endpoint.ts'
import { tag } from './audit.ts'
import { incidentId } from './examples.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/, 'is no hash of a row: 64 hexadecimal digits')

export const verifyRoutes = [
  endpoint({
    method: 'get',
    path: '/verify',
    permission: 'audit',
    tag,
    summary: 'Incidents, approvals, effects and grants, held against the log',
    description:
      'Of each incident of the page: its chain, and its row, approvals and effects as stored against what its rows fold to. The last page (`nextCursor` null) also holds standing grants against the log.',
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
    },
    async run({ query: { limit, cursor } }, { db }) {
      const ids = await incidentIdsAfter(db, cursor ?? '', limit)
      const differences: Difference[] = []
      let events = 0
      for (const id of ids) {
        const verified = await verifyIncident(db, id)
        events += verified.events
        differences.push(...verified.found)
      }
      const nextCursor = ids.length === limit ? (ids.at(-1) as string) : null
      if (nextCursor === null) differences.push(...(await verifyGrants(db)))
      return { incidents: ids.length, events, differences, nextCursor }
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
