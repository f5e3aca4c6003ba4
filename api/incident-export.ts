import { z } from '@hono/zod-openapi'
import { alertsOf } from '../db/alerts.ts'
import { listApprovals } from '../db/approvals/find.ts'
import { eventsOf } from '../db/events.ts'
import type { ApiDeps } from './deps.ts'
import { eventsCsv } from './events-csv.ts'
import { incidentExample } from './examples.ts'
import { endpoint, type Router } from './http/endpoint.ts'
import { incidentParams, requireIncident } from './incidents.ts'
import { postmortem } from './postmortem.ts'

export function incidentExportRoutes(router: Router, deps: ApiDeps): void {
  const { db } = deps
  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/export',
    permission: 'read',
    tag: 'incidents',
    summary: 'Everything about an incident, to keep or to publish',
    description: '`json`: all rows; `csv`: the timeline; `md`: a postmortem.',
    params: incidentParams,
    query: z.object({ format: z.enum(['json', 'csv', 'md']).default('json') }),
    answer: z.looseObject({}),
    example: { incident: incidentExample, events: [], approvals: [], alerts: [] },
    downloads: {
      'text/csv': 'seq,at,attempt,turn,kind,action,actor,detail,metadata,hash\n',
      'text/markdown': '# Disk 96% full\n\n## Summary\n',
    },
    problems: [404],
    async run({ params: { id }, query: { format }, c }) {
      const incident = await requireIncident(deps, id)
      const events = await eventsOf(db, id)
      const download = (type: string, text: string) =>
        c.body(text, 200, {
          'content-type': `${type}; charset=utf-8`,
          'content-disposition': `attachment; filename="${id}.${format}"`,
        })
      if (format === 'csv') return download('text/csv', eventsCsv(events))
      const approvals = await listApprovals(db, { incidentId: id }, { before: null, limit: 200 })
      const alerts = await alertsOf(db, id)
      if (format === 'md') return download('text/markdown', postmortem({ incident, events, approvals, alerts }))
      return { incident, events, approvals, alerts: alerts.map(({ raw: _, ...alert }) => alert) }
    },
  })
}
