import { z } from '@hono/zod-openapi'
import { moneyOf } from '../../db/models/spend.ts'
import { usageOf } from '../../db/models/usage.ts'
import { usage } from '../../domain/usage.ts'
import { endpoint } from '../http/endpoint.ts'

export const usageRoutes = endpoint({
  method: 'get',
  path: '/usage',
  permission: 'read',
  tag: 'usage',
  summary: 'Use of models, and approvals by people, in the last days',
  description: 'Days are UTC. A median is null if nothing of its kind has ended.',
  query: z.object({ days: z.coerce.number().int().min(1).max(90).default(7) }),
  answer: usage,
  example: {
    models: [
      {
        model: 'Qwen/Qwen2.5-72B-Instruct',
        answers: 41,
        failures: 1,
        promptTokens: 120_400,
        completionTokens: 3_100,
        reasoningTokens: 0,
        assumed: 0,
        seconds: 96,
      },
    ],
    byDay: [{ day: '2026-11-21', incidents: 4, tokens: 123_500, approvals: 2 }],
    money: {
      day: { dollars: 0.27, cap: 25 },
      month: { dollars: 11.4, cap: null },
      byModel: [{ name: 'claude-sonnet-5', answers: 41, dollars: 0.27, assumed: 0 }],
      byType: [{ name: 'disk_pressure', answers: 41, dollars: 0.27, assumed: 0 }],
      byDay: [{ name: '2026-11-21', answers: 41, dollars: 0.27, assumed: 0 }],
    },
    incidents: [{ status: 'resolved', count: 3, medianSeconds: 84 }],
    approvals: [{ status: 'approved', count: 2, medianWaitSeconds: 71, longestWaitSeconds: 130 }],
  },
  run: async ({ scope, query: { days } }) => ({ ...(await usageOf(scope, days)), money: await moneyOf(scope, days) }),
})
