import { z } from '@hono/zod-openapi'
import { listAlerts } from '../../db/alerts/alerts.ts'
import { alertState, receivedAlert } from '../../domain/alert.ts'
import { parseResourceKey } from '../../domain/registry.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { incidentId } from './examples.ts'

export const alertRoutes = endpoint({
  method: 'get',
  path: '/alerts',
  permission: 'read',
  tag: 'alerts',
  summary: 'Alerts as they were taken in, newest first',
  description: 'A repeated alert is one entry with its `count`; `raw` is the whole of it after cleansing.',
  query: z.object({
    status: alertState.optional(),
    source: z.string().max(100).optional(),
    q: z.string().max(200).optional(),
    /** `kind:id`, under any of its names. */
    resource: z
      .string()
      .max(300)
      .refine((text) => parseResourceKey(text) !== null, 'It takes kind:id, as node:web-1.')
      .optional(),
    ...pageQuery,
  }),
  answer: pageOf(receivedAlert),
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
        links: {
          generator: 'https://prometheus.example.com/graph?g0.expr=up',
          external: 'https://alertmanager.example.com',
          runbook: null,
        },
        groupKey: '{}:{alertname="ReplicationLag"}',
        sender: 'alertmanager-eu1',
        endedBy: null,
        endReason: null,
        stateWord: null,
        raw: { source: 'alertmanager', severity: 'critical', severitySource: 'alert' },
      },
    ],
    nextCursor: null,
  },
  async run({ scope, query: { limit, cursor, ...filter } }) {
    const rows = await listAlerts(scope, filter, { before: cursor ?? null, limit: limit + 1 })
    return page(rows, limit, (last) => last.id)
  },
})
