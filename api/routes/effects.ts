import { z } from '@hono/zod-openapi'
import type { WriteRecord } from '../../db/writes/effects.ts'
import { reconcileEffect } from '../../effects/run-effect.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { incidentId } from './examples.ts'

export const effectRoutes = endpoint({
  method: 'get',
  path: '/effects/{key}',
  permission: 'read',
  tag: 'platform',
  summary: 'The result of a write',
  description: '404 means that the write was never accepted, so nothing happened.',
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
  async run({ params }, deps) {
    const effect = await reconcileEffect(deps, params.key)
    if (!effect) throw notFound(`effect ${params.key}`)
    const { key, status, detail, result } = effect
    return { key, status, detail, result }
  },
})

/**
 * Returns the response to a write that is done. Otherwise throws a problem with the reason of the
 * failure, or with the key for further queries.
 */
export function answerEffect(effect: WriteRecord): { detail: string; key: string } & Record<string, unknown> {
  const { key, status, detail } = effect
  // Leaves out the job, which is recorded for later reads and which the caller already knows.
  const { job: _, ...result } = effect.result
  if (status === 'done') return { detail, ...result, key }
  const fields = { key, result }
  if (status === 'failed') throw new Problem(502, 'EFFECT_FAILED', detail, { fields })
  const text = 'The result is not known yet. Query this key again later.'
  throw new Problem(504, status === 'running' ? 'EFFECT_RUNNING' : 'EFFECT_INDETERMINATE', text, { fields })
}

export const tag = 'platform'
