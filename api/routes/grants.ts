import { z } from '@hono/zod-openapi'
import { listGrants, revokeGrant } from '../../db/approvals/grants.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { standingGrant } from '../../domain/grant.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { approvalId } from './examples.ts'
import { tag } from './judge.ts'

const exampleGrant: z.input<typeof standingGrant> = {
  id: 'grt_01k2m3n4p5q6r7s8t9v0w1x2y3',
  approvalId,
  tool: 'converge_shard',
  targets: [{ kind: 'shard', id: 'db-ams-1' }],
  uses: 3,
  usesLeft: 2,
  grantedBy: 'anna',
  grantedAt: '2026-11-21T01:50:00.000000Z',
  expiresAt: '2026-11-21T05:50:00.000000Z',
  revokedAt: null,
}

/**
 * Routes for standing grants, which are approvals that count again for one action. A decision makes
 * a standing grant.
 */
export const grantRoutes = [
  endpoint({
    method: 'get',
    path: '/grants',
    permission: 'read',
    tag,
    summary: 'Standing grants, newest first',
    answer: pageOf(standingGrant),
    example: { items: [exampleGrant], nextCursor: null },
    run: async ({ scope }) => ({ items: await listGrants(scope), nextCursor: null }),
  }),
  endpoint({
    method: 'post',
    path: '/grants/{id}/revoke',
    permission: 'decide',
    tag,
    summary: 'Ends a standing grant at once',
    params: z.object({ id: z.string().max(100) }),
    answer: z.object({ id: z.string(), revoked: z.boolean() }),
    example: { id: exampleGrant.id, revoked: true },
    problems: [404],
    async run({ params: { id }, principal }, deps) {
      await deps.db.transaction().execute(async (trx) => {
        if (!(await revokeGrant(trx, id))) throw notFound(`standing grant ${id} that could be ended`)
        const detail = 'The action needs approval again'
        await recordAudit(trx, { who: principal.name, what: 'grant.revoked', subject: id, detail })
      })
      return { id, revoked: true }
    },
  }),
]
