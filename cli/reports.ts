import { formatMinute, formatNumber, formatSpan, truncate } from '../domain/format.ts'
import { type Severity, severity as severities } from '../domain/incident.ts'
import type { Report, Spread } from '../domain/report.ts'
import { categoryWords, describeReport, formatCost, formatShare } from '../domain/status-words.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { formatTable } from './ui/table.ts'
import { inert, paint, parseOneOf, print, printJson } from './ui/terminal.ts'

type ReportOptions = ConnectionOptions & {
  since?: string
  until?: string
  type?: string
  severity?: Severity
  by: 'week' | 'type'
  csv?: true
}

export function addReportsCommand(program: CliCommand): void {
  program
    .command('reports')
    .description('how incidents ended, by week or type: resolved without a person, after a wait, escalated')
    .option('--since <day>', 'the first day (UTC), such as 2026-11-01 (default: twelve weeks ago)')
    .option('--until <day>', 'the last day (UTC) (default: today)')
    .option('--type <type>', 'incidents of one type, such as replication_lag')
    .option('--severity <word>', 'incidents of one severity', parseOneOf(severities.options))
    .option('--by <line>', 'a line for each week or type', parseOneOf(['week', 'type']), 'week')
    .option('--csv', 'every line with every number, for a spreadsheet')
    .connected('\nExample:\n  nightshift reports --since 2026-11-01 --by type\n  nightshift reports --csv > report.csv')
    .web(() => '/reports')
    .calls(async (api, { since, until, type, severity, by, csv, ...options }: ReportOptions) => {
      const query = new URLSearchParams({
        ...(since && { since }),
        ...(until && { until }),
        ...(type && { type }),
        ...(severity && { severity }),
      })
      if (csv) {
        query.set('format', 'csv')
        const response = await api.open(`/api/v1/reports?${query}`)
        // Writes the text unchanged to a file or pipe. At a terminal it is made harmless.
        const text = await response.text()
        process.stdout.write(process.stdout.isTTY ? inert(text, { lines: true }) : text)
        return
      }
      const found = (await api.get(`/api/v1/reports?${query}`)) as Report
      if (options.json) return printJson(found)
      printReport(found, by)
    })
}

function printReport({ since, until, total, byWeek, byType, spared }: Report, by: 'week' | 'type'): void {
  print(`${paint('bold', 'Incidents that began')} ${inert(since)} to ${inert(until)} (UTC)`)
  for (const { name, figure, more } of describeReport(total))
    print(`  ${name.padEnd(26)} ${figure.padStart(8)}  ${paint('dim', more)}`.trimEnd())
  for (const { category, count } of total.escalations)
    print(`${formatNumber(count).padStart(37)}  ${paint('dim', categoryWords[category] ?? inert(category))}`)
  const lines =
    by === 'week'
      ? byWeek.map((line) => ({ name: line.week, line }))
      : byType.map((line) => ({ name: line.type, line }))
  const half = (spread: Spread) => (spread === null ? '–' : formatSpan(spread.p50 * 1000))
  const rows = lines.map(({ name, line }) => [
    inert(name),
    formatNumber(line.incidents),
    formatShare(line),
    half(line.acknowledgeSeconds),
    half(line.resolveSeconds),
    half(line.approvalSeconds),
    formatNumber(line.escalated),
    formatCost(line),
  ])
  const head = [
    by === 'week' ? 'WEEK OF' : 'TYPE',
    'COUNT',
    'AUTO',
    'TAKEN',
    'RESOLVED',
    'DECIDED',
    'ESCALATED',
    'COST',
  ]
  print(`\n${formatTable(head, rows, 0)}`)
  if (spared.length > 0) print(`\n${paint('bold', 'Wakes avoided')}`)
  for (const { incidentId, title, at, text } of spared)
    print(`  ${formatMinute(at)}  ${inert(incidentId)}\n    ${truncate(`${inert(text)}: ${inert(title)}`, 74)}`)
  print(paint('dim', '\n  Times are medians. --csv has every number, --json too.'))
}
