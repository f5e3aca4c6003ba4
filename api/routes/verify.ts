import { z } from '@hono/zod-openapi'
import { verifyAudit } from '../../db/log/audit.ts'
import { verifyNext } from '../../db/verify/page.ts'
import { auditChain, verifiedPage } from '../../domain/chain.ts'
import { endpoint } from '../http/endpoint.ts'
import { tag } from './audit.ts'
import { incidentId } from './examples.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/, 'must be the hash of a row: 64 hexadecimal digits')

export const verifyRoutes = [
  endpoint({
    method: 'get',
    path: '/verify',
    permission: 'audit',
    tag,
    summary: 'Compares stored data about authority and evidence with the log and the audit',
    description:
      'For each incident of the page: its hash chain, and its row, alerts, approvals, votes and effects, each compared with the log. Then, 2,000 a page: the changes of people, tokens, grants, sources, settings, marks and devices, each compared with its row in the audit or a log. Then the tombstones of removed incidents, compared with their digests in the audit. The last page (`nextCursor` null) compares the current state of these rows. `untold`: rows of an older version lack the field, so it cannot be checked.',
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
    run: ({ query: { limit, cursor = '' } }, { db }) => verifyNext(db, cursor, limit),
  }),
  endpoint({
    method: 'get',
    path: '/audit/verify',
    permission: 'audit',
    tag,
    summary: 'Recomputes the hash chain of the audit',
    description: '`head` is an earlier hash, which must still be in the chain.',
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
