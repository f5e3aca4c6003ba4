import { z } from '@hono/zod-openapi'
import { activeAlerts, maxActiveAlerts } from '../../db/alerts/active-alerts.ts'
import { findResources } from '../../db/inventory/resources.ts'
import { resourceKind } from '../../domain/registry.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'

const tag = 'platform'

export const resourceRoutes = [
  endpoint({
    method: 'get',
    path: '/resources',
    permission: 'read',
    tag,
    summary: 'Resources whose id or name contains a text, exact matches first',
    query: z.object({
      q: z.string().min(1).max(100),
      kind: resourceKind.optional(),
      limit: z.coerce.number().int().min(1).max(100).default(20),
    }),
    answer: pageOf(z.object({ kind: resourceKind, id: z.string(), name: z.string(), aliases: z.array(z.string()) })),
    example: { items: [{ kind: 'shard', id: 'db-osl-1', name: 'db-osl-1', aliases: [] }], nextCursor: null },
    async run({ scope, query: { q, kind, limit } }, deps) {
      await deps.state.refresh()
      return { items: await findResources(scope, { kind: kind ?? null, text: q, limit }), nextCursor: null }
    },
  }),
  endpoint({
    method: 'get',
    path: '/active-alerts',
    permission: 'read',
    tag,
    summary: 'Alerts on a resource, under any of its names, that fire now or ended in the last 300 seconds',
    query: z.object({ resource: z.string().min(1).max(300) }),
    answer: pageOf(
      z.object({
        source: z.string(),
        fingerprint: z.string(),
        status: z.enum(['firing', 'resolved', 'unknown']),
        name: z.string(),
        labels: z.record(z.string(), z.string()),
        annotations: z.record(z.string(), z.string()),
        startsAt: z.string(),
        endsAt: z.string().nullable(),
        count: z.number().int(),
        incidentId: z.string().nullable(),
      }),
    ).extend({ truncated: z.boolean() }),
    example: { items: [], nextCursor: null, truncated: false },
    async run({ scope, query }) {
      const rows = await activeAlerts(scope, query.resource)
      const items = rows
        .slice(0, maxActiveAlerts)
        .map(({ source, fingerprint, status, name, labels, annotations, startsAt, endsAt, count, incidentId }) => ({
          source,
          fingerprint,
          status,
          name,
          labels,
          annotations,
          startsAt,
          endsAt,
          count,
          incidentId,
        }))
      return { items, nextCursor: null, truncated: rows.length > items.length }
    },
  }),
]

export const resourceParams = z.object({ id: z.string().min(1).max(100) })

/**
 * Set if the platform did not respond. The health is then unknown: no older result replaces it.
 */
export const staleFlag = { stale: z.literal(true).optional() }
