import { z } from '@hono/zod-openapi'
import { alertsOf } from '../../db/alerts.ts'
import { append } from '../../db/append.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { bodyOfIncident, eventsOf } from '../../db/events.ts'
import { eventAction, eventKind, type IncidentEvent, recordableAction } from '../../domain/event.ts'
import { type ApiDeps, toRowKey } from '../deps.ts'
import { numberCursor, page, pageOf } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { Problem } from '../http/middleware.ts'
import { eventExample, incidentExample } from './examples.ts'
import { postmortem } from './incident-surroundings.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const tag = 'incidents'
/** A whole log is read at once far more often than a page of it: nearly every one is shorter than this. */
const rowLimit = z.coerce.number().int().min(1).max(1_000).default(50)
const example = eventExample as EventAnswer

export function incidentEventRoutes(router: Router, deps: ApiDeps): void {
  declareListEvents(router, deps)
  declareGetBody(router, deps)
  declareAppendEvent(router, deps)
}

function declareListEvents(router: Router, deps: ApiDeps): void {
  const { db } = deps
  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/events',
    permission: 'read',
    tag,
    summary: 'The log of an incident, oldest first',
    description: '`after` is the number of the last row already seen; numbers are dense from 1.',
    params: incidentParams,
    query: z.object({ after: numberCursor, limit: rowLimit, cursor: numberCursor }),
    answer: pageOf(eventSchema),
    example: { items: [example], nextCursor: null },
    problems: [404],
    async run({ scope, params: { id }, query: { after, cursor, limit } }) {
      await requireIncident(scope, id)
      const rows = await eventsOf(db, id, { afterSeq: cursor ?? after ?? 0, limit: limit + 1 })
      return page(rows as EventAnswer[], limit, (last) => last.seq)
    },
  })
}

function declareGetBody(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/bodies/{digest}',
    permission: 'read',
    tag,
    summary: 'The whole of a large result, by the digest its row keeps',
    params: incidentParams.extend({ digest: z.string().regex(/^[0-9a-f]{64}$/) }),
    answer: z.object({ digest: z.string(), text: z.string() }),
    example: { digest: '0'.repeat(64), text: '{"items":[]}' },
    problems: [404],
    async run({ scope, params: { id, digest } }) {
      await requireIncident(scope, id)
      const text = await bodyOfIncident(scope, id, digest)
      if (text === null) throw new Problem(404, 'NOT_FOUND', 'No row of this incident has a body with this digest.')
      return { digest, text }
    },
  })
}

function declareAppendEvent(router: Router, deps: ApiDeps): void {
  const { db } = deps
  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/events',
    permission: 'record',
    tag,
    summary: 'Records a step or a finding',
    params: incidentParams,
    body: z.strictObject({ action: recordableAction, detail: z.string().min(1).max(2000) }),
    bodyExample: { action: 'investigated', detail: 'The replica stopped at 01:40.' },
    answer: eventSchema,
    example: { ...example, kind: 'commented' },
    status: 201,
    problems: [404, 409],
    agent: {
      tool: 'add_incident_event',
      identity: ({ id }, { action, detail }) => ({ incident_id: id, action, detail }),
    },
    async run({ params: { id }, body: { action, detail }, actor, judged }) {
      const { event } = await db.transaction().execute((trx) =>
        append(trx, id, judged?.attempt ?? null, {
          kind: 'commented',
          action,
          actor,
          turn: judged?.turn ?? null,
          stepKey: toRowKey(judged, 'commented'),
          detail,
          metadata: { text: detail, confidence: null, action },
        }),
      )
      return event as EventAnswer
    },
  })
}

/** A row of the log as it is answered. Its metadata has a shape per kind, which `domain/event.ts` names. */
export const eventSchema = z
  .object({
    id: z.string(),
    incidentId: z.string(),
    attempt: z.number().int(),
    seq: z.number().int(),
    stepKey: z.string().nullable(),
    turn: z.number().int().nullable(),
    kind: eventKind,
    action: eventAction,
    actor: z.string(),
    detail: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    at: z.string(),
    prevHash: z.string(),
    hash: z.string(),
  })
  .openapi('IncidentEvent')
export type EventAnswer = z.input<typeof eventSchema>

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
    async run({ scope, params: { id }, query: { format }, c }) {
      const incident = await requireIncident(scope, id)
      const events = await eventsOf(db, id)
      const download = (type: string, text: string) =>
        c.body(text, 200, {
          'content-type': `${type}; charset=utf-8`,
          'content-disposition': `attachment; filename="${id}.${format}"`,
        })
      if (format === 'csv') return download('text/csv', eventsCsv(events))
      const approvals = await listApprovals(scope, { incidentId: id }, { before: null, limit: 200 })
      const alerts = await alertsOf(db, id)
      if (format === 'md') return download('text/markdown', postmortem({ incident, events, approvals, alerts }))
      return { incident, events, approvals, alerts: alerts.map(({ raw: _, ...alert }) => alert) }
    },
  })
}

const columns = ['seq', 'at', 'attempt', 'turn', 'kind', 'action', 'actor', 'detail', 'metadata', 'hash'] as const

/** Rows as RFC 4180. A cell that a spreadsheet would take for a formula begins with an apostrophe: alerts write here too. */
export function eventsCsv(events: IncidentEvent[]): string {
  const lines = events.map((event) =>
    columns.map((column) => cell(column === 'metadata' ? JSON.stringify(event.metadata) : event[column])).join(','),
  )
  return `${[columns.join(','), ...lines].join('\r\n')}\r\n`
}

function cell(value: string | number | null): string {
  if (value === null) return ''
  const text = String(value)
  const inert = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert
}
