import { z } from '@hono/zod-openapi'
import { reportOf } from '../../db/incidents/reports.ts'
import { formatCsv } from '../../domain/format.ts'
import { escalationCategory, incidentType, severity as severities } from '../../domain/incident.ts'
import type { Postmortem } from '../../domain/postmortem.ts'
import { type Report, type ReportLine, report } from '../../domain/report.ts'
import { endpoint } from '../http/endpoint.ts'
import { calendarDay } from '../http/moments.ts'
import { incidentExample, incidentId } from './examples.ts'

const dayMs = 86_400_000
const usualDays = 84
/** Maximum number of days of a report: two years, with a line per week. */
const maxDays = 731

const lineExample: ReportLine = {
  incidents: 40,
  closed: 39,
  resolved: 31,
  autoResolved: 26,
  unproven: 0,
  escalated: 8,
  escalations: [{ category: 'no_tool', count: 8 }],
  acknowledgeSeconds: { p50: 4.2, p90: 31 },
  resolveSeconds: { p50: 84, p90: 610 },
  approvals: 6,
  approvalsWithinSeconds: 1,
  approvalSeconds: { p50: 71, p90: 240 },
  repairs: 22,
  repairsNotLasting: 1,
  pagesHeld: 9,
  questionsHeld: 2,
  wakesAvoided: 9,
  unshownClaims: 2,
  causesRight: 9,
  causesPartly: 2,
  causesWrong: 1,
  dollars: 0.27,
}

export const reportRoutes = endpoint({
  method: 'get',
  path: '/reports',
  permission: 'read',
  tag: 'usage',
  summary: 'How the incidents of a range of days ended: in total, by type and by week',
  description:
    'Days are UTC, both included. The default of `until` is today, that of `since` twelve weeks earlier. The range is two years at most; the response names the days that it covers. With `severity`, `dollars` is null, because costs are stored by type. `csv` has a row for the total, each week and each type.',
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
    spared: [
      {
        incidentId,
        title: incidentExample.title,
        at: '2026-11-22T02:12:17.000000Z',
        text: 'No page: repaired in 37 s, alert ended',
      },
    ],
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

function rangeOf(since: string | undefined, until = toDay(Date.now())): { since: string; until: string } {
  const last = Date.parse(until)
  const earliest = toDay(last - (maxDays - 1) * dayMs)
  const wanted = since ?? toDay(last - (usualDays - 1) * dayMs)
  return { since: wanted < earliest ? earliest : wanted, until }
}

function toDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/**
 * Writes one row for the total, for each week and for each type, with a column for each category of
 * escalations. Times are in seconds.
 */
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
  ['quiet_unproven', (line) => line.unproven],
  ['pages_held', (line) => line.pagesHeld],
  ['wakes_avoided', (line) => line.wakesAvoided],
  ['approvals_within_5_s', (line) => line.approvalsWithinSeconds],
  ['causes_right', (line) => line.causesRight],
  ['causes_partly', (line) => line.causesPartly],
  ['causes_wrong', (line) => line.causesWrong],
  ['questions_held', (line) => line.questionsHeld],
]

function cellsOf(line: ReportLine): (number | null)[] {
  return columns.map(([, cell]) => cell(line))
}

export const tag = 'incidents'

export const example: Postmortem = {
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
