import { z } from '@hono/zod-openapi'
import { usageOf } from '../db/usage.ts'
import type { ApiDeps } from './deps.ts'
import { endpoint, type Router } from './http/endpoint.ts'

const count = z.number().int()

export function usageRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/usage',
    permission: 'read',
    tag: 'usage',
    summary: 'What the last days took of models and of people',
    description: 'Days are days of UTC. A median is null where nothing of the kind has ended.',
    query: z.object({ days: z.coerce.number().int().min(1).max(90).default(7) }),
    answer: z.object({
      models: z.array(
        z.object({
          ...{ model: z.string(), answers: count, failures: count },
          ...{
            promptTokens: z.number(),
            completionTokens: z.number(),
            reasoningTokens: z.number(),
            seconds: z.number(),
          },
        }),
      ),
      byDay: z.array(z.object({ day: z.string(), incidents: count, tokens: z.number(), approvals: count })),
      incidents: z.array(z.object({ status: z.string(), count, medianSeconds: z.number().nullable() })),
      approvals: z.array(
        z.object({
          ...{ status: z.string(), count },
          ...{ medianWaitSeconds: z.number().nullable(), longestWaitSeconds: z.number().nullable() },
        }),
      ),
    }),
    example: {
      models: [
        {
          ...{ model: 'Qwen/Qwen2.5-72B-Instruct', answers: 41, failures: 1 },
          ...{ promptTokens: 120_400, completionTokens: 3_100, reasoningTokens: 0, seconds: 96 },
        },
      ],
      byDay: [{ day: '2026-11-21', incidents: 4, tokens: 123_500, approvals: 2 }],
      incidents: [{ status: 'resolved', count: 3, medianSeconds: 84 }],
      approvals: [{ status: 'approved', count: 2, medianWaitSeconds: 71, longestWaitSeconds: 130 }],
    },
    run: ({ query: { days } }) => usageOf(deps.db, days),
  })
}
