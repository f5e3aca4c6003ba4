import { z } from '@hono/zod-openapi'
import { alertsOf } from '../../db/alerts/alerts.ts'
import { listApprovals } from '../../db/approvals/find.ts'
import { postmortemEdits, writePostmortem } from '../../db/incidents/postmortems.ts'
import { reportOf } from '../../db/incidents/reports.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Scope } from '../../db/scope.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatCsv } from '../../domain/format.ts'
import { escalationCategory, type Incident, incidentType, severity as severities } from '../../domain/incident.ts'
import {
  foldPostmortem,
  type Postmortem,
  type PostmortemSection,
  postmortem,
  postmortemMarkdown,
} from '../../domain/postmortem.ts'
import { type Report, type ReportLine, report } from '../../domain/status.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { calendarDay } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'
import { Problem } from '../http/middleware.ts'
import { incidentExample, incidentId } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const dayMs = 86_400_000
const usualDays = 84
/** A week is a line: two years of them. */
const mostDays = 731

const lineExample: ReportLine = {
  incidents: 40,
  closed: 39,
  resolved: 31,
  autoResolved: 26,
  escalated: 8,
  escalations: [{ category: 'no_tool', count: 8 }],
  acknowledgeSeconds: { p50: 4.2, p90: 31 },
  resolveSeconds: { p50: 84, p90: 610 },
  approvals: 6,
  approvalSeconds: { p50: 71, p90: 240 },
  repairs: 22,
  repairsNotLasting: 1,
  unshownClaims: 2,
  dollars: 0.27,
}

export function reportRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/reports',
    permission: 'read',
    tag: 'usage',
    summary: 'What became of the incidents that began in some days: in all, by type and by week',
    description:
      'Days are days of UTC, both included. Without `until` today; without `since` twelve weeks. An earlier `since` than two years before `until` counts as that: the answer says which days it is about. With `severity`, `dollars` is null: what models cost is kept by type. `csv` has a row for the total, each week and each type.',
    query: z.object({
      since: calendarDay.optional(),
      until: calendarDay.optional(),
      type: incidentType.optional(),
      severity: severities.optional(),
      format: z.enum(['json', 'csv']).default('json'),
    }),
    answer: report,
    example: {
      since: '2026-11-16',
      until: '2026-11-22',
      total: lineExample,
      byType: [{ type: 'disk_pressure', ...lineExample }],
      byWeek: [{ week: '2026-11-16', ...lineExample }],
    },
    downloads: { 'text/csv': 'line,name,incidents\r\ntotal,2026-11-16 to 2026-11-22,40\r\n' },
    async run({ scope, query: { since, until, type, severity, format }, c }) {
      const found = await reportOf(scope, rangeOf(since, until), { type: type ?? null, severity: severity ?? null })
      if (format === 'json') return found
      return c.body(reportCsv(found), 200, {
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="nightshift-${found.since}-${found.until}.csv"`,
      })
    },
  })
}

function rangeOf(since: string | undefined, until = toDay(Date.now())): { since: string; until: string } {
  const last = Date.parse(until)
  const earliest = toDay(last - (mostDays - 1) * dayMs)
  const wanted = since ?? toDay(last - (usualDays - 1) * dayMs)
  return { since: wanted < earliest ? earliest : wanted, until }
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** A row for the total, each week and each type, with a column for each category of escalations. Seconds. */
function reportCsv({ since, until, total, byWeek, byType }: Report): string {
  return formatCsv([
    ['line', 'name', ...columns.map(([name]) => name)],
    ['total', `${since} to ${until}`, ...cellsOf(total)],
    ...byWeek.map(({ week, ...line }) => ['week', week, ...cellsOf(line)]),
    ...byType.map(({ type, ...line }) => ['type', type, ...cellsOf(line)]),
  ])
}

const columns: [name: string, cell: (line: ReportLine) => number | null][] = [
  ['incidents', (line) => line.incidents],
  ['closed', (line) => line.closed],
  ['resolved', (line) => line.resolved],
  ['auto_resolved', (line) => line.autoResolved],
  ['acknowledge_p50_s', (line) => line.acknowledgeSeconds?.p50 ?? null],
  ['acknowledge_p90_s', (line) => line.acknowledgeSeconds?.p90 ?? null],
  ['resolve_p50_s', (line) => line.resolveSeconds?.p50 ?? null],
  ['resolve_p90_s', (line) => line.resolveSeconds?.p90 ?? null],
  ['approvals', (line) => line.approvals],
  ['approval_p50_s', (line) => line.approvalSeconds?.p50 ?? null],
  ['approval_p90_s', (line) => line.approvalSeconds?.p90 ?? null],
  ['repairs', (line) => line.repairs],
  ['repairs_not_lasting', (line) => line.repairsNotLasting],
  ['unshown_claims', (line) => line.unshownClaims],
  ['dollars', (line) => line.dollars],
  ['escalated', (line) => line.escalated],
  ...escalationCategory.options.map((category): (typeof columns)[number] => [
    `escalated_${category}`,
    (line) => line.escalations.find((each) => each.category === category)?.count ?? 0,
  ]),
]

function cellsOf(line: ReportLine): (number | null)[] {
  return columns.map(([, cell]) => cell(line))
}

const tag = 'incidents'
const longestSection = 10_000
const writtenSection = z.string().min(1).max(longestSection).regex(/\S/).nullable()

const example: Postmortem = {
  incidentId,
  title: incidentExample.title,
  version: 1,
  sections: [
    {
      section: 'cause',
      title: 'Cause',
      sentences: [{ text: 'Supported: the replica was stopped', rows: [7, 12], attempt: null }],
      text: 'Somebody stopped the replica by hand.',
      edited: {
        text: 'Somebody stopped the replica by hand.',
        by: 'anna',
        at: '2026-11-22T09:00:00.000000Z',
        version: 1,
      },
    },
  ],
  timeline: [{ seq: 7, at: '2026-11-22T01:40:00.000000Z', actor: 'system:nightshift', text: 'Claimed' }],
  left: 0,
  rows: 23,
  edits: [{ version: 1, by: 'anna', at: '2026-11-22T09:00:00.000000Z', sections: ['cause'] }],
}

/** What an incident came to, as pages and files that people keep. */
export function postmortemRoutes(router: Router, deps: ApiDeps): void {
  declareReadPostmortem(router, deps)
  declareWritePostmortem(router, deps)
  declareExport(router, deps)
}

async function readPostmortem(scope: Scope, incident: Incident, events: IncidentEvent[]): Promise<Postmortem> {
  return foldPostmortem(incident, events, await postmortemEdits(scope, incident.id))
}

function declareReadPostmortem(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/postmortem',
    permission: 'read',
    tag,
    summary: 'The postmortem of an incident, with what people wrote into it',
    description:
      'Each section is folded from the rows of the log, by code: `sentences` with the numbers of their rows. `edited` is what a person wrote instead. As a file: `export?format=md`.',
    params: incidentParams,
    answer: postmortem,
    example,
    problems: [404],
    async run({ scope, params: { id } }) {
      const incident = await requireIncident(scope, id)
      return await readPostmortem(scope, incident, await eventsOf(deps.db, id))
    },
  })
}

function declareWritePostmortem(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'post',
    path: '/incidents/{id}/postmortem',
    permission: 'record',
    tag,
    summary: 'Writes sections of a postmortem, under the name of the caller',
    description:
      'Markdown; null puts the folded text back. `version` is the one that the caller saw: 409 `VERSION_CHANGED` where somebody wrote meanwhile, and nothing is kept. The log stays as it is, and every version stays with its name and time.',
    params: incidentParams,
    body: z.strictObject({
      version: z.number().int().min(0).max(1_000_000),
      sections: z
        .strictObject({
          summary: writtenSection,
          impact: writtenSection,
          cause: writtenSection,
          done: writtenSection,
          refused: writtenSection,
          questions: writtenSection,
          followUp: writtenSection,
        } satisfies Record<PostmortemSection, typeof writtenSection>)
        .partial()
        .refine((sections) => Object.keys(sections).length > 0, 'names no section')
        .openapi({ minProperties: 1 }),
    }),
    bodyExample: { version: 0, sections: { cause: 'Somebody stopped the replica by hand.' } },
    answer: postmortem,
    example,
    problems: [404, 409],
    async run({ scope, params: { id }, body: { version, sections }, principal, actor }) {
      const incident = await requireIncident(scope, id)
      const { operatorId, name: who } = requirePerson(principal, actor)
      if (!(await writePostmortem(deps.db, id, { seen: version, sections, operatorId, who }))) {
        const newest = (await postmortemEdits(scope, id)).at(-1)
        const now = newest ? `at version ${newest.version}, by ${newest.by}` : 'not edited yet (version 0)'
        const detail = `The postmortem of ${id} is ${now}; you saw version ${version}. Read it again, then write.`
        throw new Problem(409, 'VERSION_CHANGED', detail, { fields: { version: newest?.version ?? 0 } })
      }
      return await readPostmortem(scope, incident, await eventsOf(deps.db, id))
    },
  })
}

function declareExport(router: Router, deps: ApiDeps): void {
  const { db } = deps
  endpoint(router, deps, {
    method: 'get',
    path: '/incidents/{id}/export',
    permission: 'read',
    tag,
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
      if (format === 'md') {
        const found = await readPostmortem(scope, incident, events)
        const page = deps.publicUrl === null ? null : new URL(`/incidents/${id}`, deps.publicUrl).href
        return download('text/markdown', postmortemMarkdown(found, events, page))
      }
      const approvals = await listApprovals(scope, { incidentId: id }, { before: null, limit: 200 })
      const alerts = await alertsOf(db, id)
      return { incident, events, approvals, alerts: alerts.map(({ raw: _, ...alert }) => alert) }
    },
  })
}

const eventColumns = ['seq', 'at', 'attempt', 'turn', 'kind', 'action', 'actor', 'detail', 'metadata', 'hash'] as const

function eventsCsv(events: IncidentEvent[]): string {
  const lines = events.map((event) =>
    eventColumns.map((column) => (column === 'metadata' ? JSON.stringify(event.metadata) : event[column])),
  )
  return formatCsv([eventColumns, ...lines])
}
