import type { Connection } from '@temporalio/client'
import type { Command } from 'commander'
import { connectionOptions, type TemporalSettings } from '../clients/temporal.ts'
import { temporalSettingsIn } from '../config.ts'
import { formatNumber, formatSpan } from '../domain/format.ts'
import { closedStatuses, incidentStatus, type Severity, severity as severities } from '../domain/incident.ts'
import { formatDollars } from '../domain/price.ts'
import type { Report, SpentOn, Spread, Usage } from '../domain/status.ts'
import { categoryWords, describeReport, formatCost, formatShare } from '../domain/status-words.ts'
import { isTemporalGiven, type Run } from '../start/run-file.ts'
import { apiApproval, apiIncident, listAll } from './api.ts'
import { type ConnectionOptions, commandLine, connect, withConnectionOptions } from './connection.ts'
import { formatTable, paintState } from './ui/table.ts'
import { inert, paint, parseOneOf, print, printJson } from './ui/terminal.ts'

/** Larger numbers are shown as `500+`. */
const countUpTo = 500

export function addStatusCommand(program: Command): void {
  withConnectionOptions(program.command('status').description('what is open, what waits for a person, where it runs'))
    .addHelpText('after', '\nExample:\n  nightshift status')
    .action(async (options: ConnectionOptions) => {
      const { api, target } = connect(options)
      const open = incidentStatus.options.filter((status) => !closedStatuses.includes(status))
      const lists = await Promise.all(
        [...open, 'escalated' as const].map(async (status) => {
          const items = await listAll(api, `/api/v1/incidents?status=${status}&limit=100`, apiIncident, countUpTo)
          return [status, items.length] as const
        }),
      )
      const pending = await listAll(api, '/api/v1/approvals?status=pending', apiApproval, countUpTo)
      if (options.json) {
        return printJson({
          url: target.url,
          incidents: Object.fromEntries(lists),
          pendingApprovals: pending.map(({ id }) => id),
        })
      }
      print(`${paint('bold', 'Nightshift')} at ${target.url}`)
      for (const [status, count] of lists) {
        print(`  ${String(count).padStart(5)}${count === countUpTo ? '+' : ' '} ${paintState(status)}`)
      }
      for (const each of pending) {
        print(
          `\n  ${paintState('pending')} ${inert(each.dryRun.summary).slice(0, 60)}, expires in ${formatSpan(Date.parse(each.expiresAt) - Date.now())}`,
        )
        print(`    ${commandLine(`approvals show ${each.id}`)}`)
      }
    })
}

export function addUsageCommand(program: Command): void {
  withConnectionOptions(program.command('usage').description('tokens and approvals, and what they cost'))
    .option('--days <n>', 'over so many days, today included', '7')
    .addHelpText('after', '\nExample:\n  nightshift usage --days 30')
    .action(async ({ days, ...options }: ConnectionOptions & { days: string }) => {
      const { api } = connect(options)
      const used = (await api.get(`/api/v1/usage?days=${encodeURIComponent(days)}`)) as Usage
      if (options.json) return printJson(used)
      const { money, models } = used
      for (const period of ['day', 'month'] as const) {
        const { dollars, cap } = money[period]
        const of = cap === null ? `no cap (agent.budget_${period})` : `of ${formatDollars(cap)}`
        print(`${period === 'day' ? 'Today' : 'Month'} (UTC)  ${formatDollars(dollars)}, ${of}`)
      }
      print(`\nOver ${days} ${days === '1' ? 'day' : 'days'}:`)
      const tokens = new Map(
        models.map(({ model, promptTokens, completionTokens }) => [model, promptTokens + completionTokens]),
      )
      const rows = (list: SpentOn[], toTokens: (name: string) => string) =>
        list.map(({ name, answers, dollars, assumed }) => [
          inert(name),
          String(answers),
          toTokens(name),
          `${formatDollars(dollars)}${assumed > 0 ? ' at the dearest price' : ''}`,
        ])
      const ofModel = (name: string) => formatNumber(tokens.get(name) ?? 0)
      print(formatTable(['MODEL', 'ANSWERS', 'TOKENS', 'COST'], rows(money.byModel, ofModel), 0))
      print(
        formatTable(
          ['TYPE', 'ANSWERS', '', 'COST'],
          rows(money.byType, () => ''),
          0,
        ),
      )
      print(
        formatTable(
          ['DAY (UTC)', 'ANSWERS', '', 'COST'],
          rows(money.byDay, () => ''),
          0,
        ),
      )
    })
}

type ReportOptions = ConnectionOptions & {
  since?: string
  until?: string
  type?: string
  severity?: Severity
  by: 'week' | 'type'
  csv?: true
}

export function addReportsCommand(program: Command): void {
  withConnectionOptions(
    program
      .command('reports')
      .description('what became of incidents: resolved alone, waited for, escalated, by week or type')
      .option('--since <day>', 'the first day (UTC), as 2026-11-01; twelve weeks ago when absent')
      .option('--until <day>', 'the last day (UTC); today when absent')
      .option('--type <type>', 'incidents of one type, as replication_lag')
      .option('--severity <word>', 'incidents of one severity', parseOneOf(severities.options))
      .option('--by <line>', 'a line for each week or type', parseOneOf(['week', 'type']), 'week')
      .option('--csv', 'every line with every number, for a spreadsheet'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift reports --since 2026-11-01 --by type\n  nightshift reports --csv > report.csv',
    )
    .action(async ({ since, until, type, severity, by, csv, ...options }: ReportOptions) => {
      const { api } = connect(options)
      const query = new URLSearchParams({
        ...(since && { since }),
        ...(until && { until }),
        ...(type && { type }),
        ...(severity && { severity }),
      })
      if (csv) {
        query.set('format', 'csv')
        const response = await api.open(`/api/v1/reports?${query}`)
        // A file gets the bytes unchanged; on a terminal they must be harmless.
        const text = await response.text()
        process.stdout.write(process.stdout.isTTY ? inert(text, { lines: true }) : text)
        return
      }
      const found = (await api.get(`/api/v1/reports?${query}`)) as Report
      if (options.json) return printJson(found)
      printReport(found, by)
    })
}

function printReport({ since, until, total, byWeek, byType }: Report, by: 'week' | 'type'): void {
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
  print(paint('dim', '\n  Times are medians. --csv has every number, --json too.'))
}

/** A service that does not answer in this time counts as down. */
const probeTimeoutMs = 3_000

type ProbeResult = { ok: boolean; detail: string }

/** Whether an HTTP request succeeds. `detail` is the start of the answer, or the failure. */
export async function probeHttp(url: URL, headers: Record<string, string> = {}): Promise<ProbeResult> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(probeTimeoutMs) })
    const text = (await response.text()).slice(0, 2_000)
    return { ok: response.ok, detail: response.ok ? text : `it answered ${response.status}: ${text.slice(0, 300)}` }
  } catch (error) {
    return { ok: false, detail: describeError(error) }
  }
}

/**
 * Whether PostgreSQL accepts the connection, its version, and which of these migrations are
 * missing.
 */
export async function probePostgres(url: string, migrations: string[]): Promise<ProbeResult & { lacks: string[] }> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: probeTimeoutMs })
  // A connection that breaks after the answer does not matter.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ version: string; migrated: string | null }>(
      "select current_setting('server_version') as version, to_regclass('kysely_migration')::text as migrated",
    )
    const done = rows[0]?.migrated ? await client.query<{ name: string }>('select name from kysely_migration') : null
    const names = new Set(done?.rows.map(({ name }) => name))
    return {
      ok: true,
      detail: `PostgreSQL ${rows[0]?.version}`,
      lacks: migrations.filter((name) => !names.has(name)),
    }
  } catch (error) {
    return { ok: false, detail: describeError(error), lacks: [] }
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Whether workers polled a task queue in the last 90 s. A long poll lasts 60 s. */
export async function probeWorkers(settings: TemporalSettings, taskQueue: string): Promise<ProbeResult> {
  let connection: Connection | undefined
  try {
    const temporal = await import('@temporalio/client')
    connection = await temporal.Connection.connect({ ...connectionOptions(settings), connectTimeout: probeTimeoutMs })
    const { namespace } = settings
    const { pollers } = await connection.withDeadline(Date.now() + probeTimeoutMs, () =>
      connection!.workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 }),
    )
    const since = Date.now() / 1000 - 90
    const alive = (pollers ?? []).filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) >= since)
    return { ok: alive.length > 0, detail: `${alive.length} poll the task queue ${taskQueue}` }
  } catch (error) {
    return { ok: false, detail: describeError(error) }
  } finally {
    await connection?.close().catch(() => undefined)
  }
}

function describeError(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return cause.name === 'TimeoutError'
    ? 'no answer'
    : cause.message || (cause as NodeJS.ErrnoException).code || cause.name
}

/** The address and namespace of Temporal when nothing else is configured. */
export const defaultTemporal = { address: '127.0.0.1:7233', namespace: 'default' }

/**
 * The Temporal of the start that runs here, else the one that the environment names, else null.
 * Throws ConfigError when the environment contradicts itself.
 */
export function readTemporalSettings(run: Run | null): TemporalSettings | null {
  const given = isTemporalGiven(process.env) ? temporalSettingsIn() : null
  // An embedded server speaks no TLS; the user's own was started with these settings.
  if (run && given?.address !== run.temporalAddress) {
    return { address: run.temporalAddress, namespace: 'default', tls: false }
  }
  return given
}
