import { z } from '@hono/zod-openapi'
import { listAlerts } from '../db/alerts.ts'
import type { ApiDeps } from './deps.ts'
import { incidentId } from './examples.ts'
import { endpoint, type Router } from './http/endpoint.ts'
import { page, pageOf, pageQuery } from './http/paging.ts'

const words = z.record(z.string(), z.string())
const alert = z.object({
  id: z.string(),
  source: z.string(),
  fingerprint: z.string(),
  status: z.enum(['firing', 'resolved', 'unknown']),
  name: z.string(),
  labels: words,
  annotations: words,
  startsAt: z.string(),
  endsAt: z.string().nullable(),
  count: z.number().int(),
  firstSeenAt: z.string(),
  lastSeenAt: z.string(),
  /** Null: it ended before it had begun, and opened nothing. */
  incidentId: z.string().nullable(),
  /** Everything that was read from what the source sent. */
  raw: z.unknown(),
})

export function alertRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/alerts',
    permission: 'read',
    tag: 'alerts',
    summary: 'Alerts as they were taken in, newest first',
    description: 'A repeated alert is one entry with its `count`; `raw` is the whole of it after cleansing.',
    query: z.object({
      status: z.enum(['firing', 'resolved', 'unknown']).optional(),
      source: z.string().max(100).optional(),
      q: z.string().max(200).optional(),
      ...pageQuery,
    }),
    answer: pageOf(alert),
    example: {
      items: [
        {
          id: 'alr_01kam3x0q2v8d5t7w9y1b3c5e7',
          source: 'alertmanager',
          fingerprint: '93f1a0c2d4b6e8f0',
          status: 'firing',
          name: 'ReplicationLag',
          labels: { alertname: 'ReplicationLag', shard: 'db-osl-1', severity: 'critical' },
          annotations: { summary: 'Replica is 214 s behind its primary' },
          startsAt: '2026-11-21T01:45:38.000000Z',
          endsAt: null,
          count: 3,
          firstSeenAt: '2026-11-21T01:45:40.120000Z',
          lastSeenAt: '2026-11-21T01:46:40.120000Z',
          incidentId,
          raw: { source: 'alertmanager', severity: 'critical', severitySource: 'alert' },
        },
      ],
      nextCursor: null,
    },
    async run({ query: { limit, cursor, ...filter } }) {
      const rows = await listAlerts(deps.db, filter, { before: cursor ?? null, limit: limit + 1 })
      const items = rows.map(({ links: _, groupKey: __, ...row }) => row)
      return page(items, limit, (last) => last.id)
    },
  })
}
