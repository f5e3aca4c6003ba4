import { z } from '@hono/zod-openapi'
import { reconcileEffect } from '../effects/reconcile.ts'
import type { ApiDeps } from './deps.ts'
import { incidentId } from './examples.ts'
import { endpoint, type Router } from './http/endpoint.ts'
import { notFound } from './http/problem.ts'

export function effectRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/effects/{key}',
    permission: 'read',
    tag: 'platform',
    summary: 'What became of a write',
    description: '404 means that it was never accepted: nothing happened.',
    params: z.object({ key: z.string().min(1).max(400) }),
    answer: z.object({
      key: z.string(),
      status: z.enum(['running', 'done', 'failed', 'indeterminate']),
      detail: z.string(),
      result: z.record(z.string(), z.unknown()),
    }),
    example: {
      key: `${incidentId}.1:3:tool_started:0`,
      status: 'done',
      detail: '2 nodes converged',
      result: { nodes: 2 },
    },
    problems: [404],
    async run({ params }) {
      const effect = await reconcileEffect(deps, params.key)
      if (!effect) throw notFound(`effect ${params.key}`)
      const { key, status, detail, result } = effect
      return { key, status, detail, result }
    },
  })
}
