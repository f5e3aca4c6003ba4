import { z } from '@hono/zod-openapi'
import { listAlerts } from '../../db/alerts/alerts.ts'
import { listUnmappedLabels } from '../../db/alerts/unmapped-labels.ts'
import { alertState, receivedAlert, unmappedLabel } from '../../domain/alert.ts'
import { parseResourceKey } from '../../domain/registry.ts'
import { page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { incidentId } from './examples.ts'

const listEndpoint = endpoint({
  method: 'get',
  path: '/alerts',
  permission: 'read',
  tag: 'alerts',
  summary: 'Alerts as they were received, newest first',
  description:
    'A repeated alert is one entry with its `count`; `raw` is the whole alert, without secrets. `unmatched=true`: only alerts for which no resource was found.',
  query: z.object({
    status: alertState.optional(),
    source: z.string().max(100).optional(),
    q: z.string().max(200).optional(),
    /** A resource as `kind:id`, by any of its names. */
    resource: z
      .string()
      .max(300)
      .refine((text) => parseResourceKey(text) !== null, 'Write the resource as kind:id, such as node:web-1.')
      .optional(),
    unmatched: z.enum(['true', 'false']).optional(),
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
  async run({ scope, query: { limit, cursor, unmatched, ...filter } }) {
    const isUnmatched = unmatched === 'true'
    const rows = await listAlerts(scope, { ...filter, isUnmatched }, { before: cursor ?? null, limit: limit + 1 })
    return page(rows, limit, (last) => last.id)
  },
})

const unmappedEndpoint = endpoint({
  method: 'get',
  path: '/alerts/unmapped-labels',
  permission: 'read',
  tag: 'alerts',
  summary: 'Labels with names of known resources, in alerts for which no resource was found',
  description:
    'Covers the newest 2,000 alerts of the last 30 days for which no resource would be found now. `rule` is a value for the setting `alert.resource_labels`; `command` sets this value.',
  answer: z.object({ items: z.array(unmappedLabel) }),
  example: {
    items: [
      {
        label: 'appliance',
        kind: 'host',
        alerts: 12,
        things: 3,
        examples: [{ value: 'esx-02.corp.example', resource: 'host:esx-02' }],
        rule: 'appliance -> host:*',
        command: "nightshift config set alert.resource_labels 'appliance -> host:*'",
      },
    ],
  },
  run: async ({ scope }) => ({ items: await listUnmappedLabels(scope) }),
})

export const alertRoutes = [listEndpoint, unmappedEndpoint]
