import { rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { createToken, ensureOperator } from '../db/access/tokens.ts'
import { listAlerts } from '../db/alerts/alerts.ts'
import { connect, type Db } from '../db/connect.ts'
import { backlogOf, modelHealth } from '../db/current-counts.ts'
import { type IncidentFilter, listIncidents } from '../db/incidents/incidents.ts'
import { reportOf } from '../db/incidents/reports.ts'
import { listAudit } from '../db/log/audit.ts'
import { eventsOf, lastEventsOf } from '../db/log/events.ts'
import { usageOf } from '../db/models/usage.ts'
import { systemScope } from '../db/scope.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { fill } from './fill.ts'
import { median, percentile, report, startApi } from './stage.ts'

const incidents = Number(process.env.INCIDENTS ?? 100_000)
const events = Number(process.env.EVENTS ?? 5_000_000)
const calls = 50
const warmUp = 3
const bytesPerEvent = 1_500

type Measurement = { name: string; path?: string; query?: (db: Db) => Promise<unknown> }

/**
 * Starts the deployed API over half a year of data, with a signed-in session: 100,000 incidents,
 * 5,000,000 rows. `INCIDENTS=` and `EVENTS=` scale the data. `KEEP=1` keeps the database and uses
 * it again.
 */
export async function halfYear() {
  const kept = process.env.KEEP ? join(tmpdir(), `nightshift-load-${incidents}-${events}`) : null
  const dir = kept ?? temporaryDirectory().path
  roomFor(events * bytesPerEvent)
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const owner = connect(postgres.url, { owner: true, max: 1 })
  const startedAt = performance.now()
  if ((await countOf(owner)) === 0) await fill(postgres.url, incidents, events, (text) => console.log(`  ${text}`))
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(`  filled in ${seconds} s`)
  const rows = await sizes(owner)
  const db = connect(postgres.url, { max: 4 })
  const api = await startApi({ databaseUrl: postgres.url, dir })
  return {
    ...{ db, api, rows, seconds },
    token: await createToken(db, {
      name: 'load',
      role: 'admin',
      operatorId: await ensureOperator(db, 'load', 'admin'),
    }),
    async stop() {
      await api.stop()
      await Promise.all([db.destroy(), owner.destroy()])
      await postgres.stop()
      if (kept) console.log(`The database is kept in ${kept}`)
      else rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Measures the requests that pages send. */
export async function load(): Promise<void> {
  const { db, api, rows, seconds, token, stop } = await halfYear()
  const cookie = await signIn(token, api.url)
  const table: Record<string, Record<string, number | string>> = {}
  for (const { name, path, query } of await questions(db)) {
    const inDatabase = query ? await timesOf(() => query(db)) : null
    const overHttp = path ? await timesOf(() => ask(api.url, path, cookie)) : null
    table[name] = { ...columns('SQL', inDatabase), ...columns('HTTP', overHttp) }
  }
  console.table(table)
  const lists = Object.entries(table).filter(([name]) => name.startsWith('incidents'))
  report('load', {
    incidents: rows.incidents,
    events: rows.events,
    'size of the database': rows.size,
    'filled in (s)': seconds,
    'slowest incident list, SQL median (ms, under 50)': Math.max(
      ...lists.map(([, row]) => Number(row['SQL median (ms)'])),
    ),
    'slowest incident list, HTTP median (ms)': Math.max(...lists.map(([, row]) => Number(row['HTTP median (ms)']))),
    'API, resident (MB)': api.residentMb(),
  })
  await stop()
}

function lastDays(days: number): { since: string; until: string } {
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  return { since: day(Date.now() - (days - 1) * 86_400_000), until: day(Date.now()) }
}

/**
 * Lists the requests of pages, each with its path over HTTP and its queries in the database, which
 * are measured alone.
 */
async function questions(db: Db): Promise<Measurement[]> {
  return [...(await incidentQuestions(db)), ...(await otherQuestions(db))]
}

async function incidentQuestions(db: Db): Promise<Measurement[]> {
  const list = (
    name: string,
    query: Record<string, string>,
    filter: IncidentFilter,
    before: string | null = null,
  ): Measurement => ({
    name: `incidents${name}`,
    path: `/incidents?${new URLSearchParams({ ...query, ...(before && { cursor: before }) })}`,
    async query() {
      const found = await listIncidents(systemScope(db), filter, { before, limit: 51 })
      const ids = found.map(({ id }) => id)
      await lastEventsOf(systemScope(db), ids)
    },
  })
  const at = async (depth: number) =>
    (await db.selectFrom('incident').select('id').orderBy('id', 'desc').offset(depth).limit(1).executeTakeFirst())
      ?.id ?? null
  const group = await db
    .selectFrom('incident')
    .select('groupId')
    .where('groupId', 'is not', null)
    .limit(1)
    .executeTakeFirstOrThrow()
  const deep = await at(Math.floor(incidents * 0.9))
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
  const month = { since: ago(33), until: ago(30) }
  const never = { since: ago(-30), until: ago(-31) }
  return [
    list('', {}, {}),
    list(', deep cursor', {}, {}, deep),
    list(', status open', { status: 'open' }, { status: ['open'] }),
    list(', status awaiting_approval', { status: 'awaiting_approval' }, { status: ['awaiting_approval'] }),
    list(
      ', three live statuses',
      { status: 'open,investigating,awaiting_approval' },
      { status: ['open', 'investigating', 'awaiting_approval'] },
    ),
    list(', status live, deep cursor', { status: 'open,investigating' }, { status: ['open', 'investigating'] }, deep),
    list(', status cancelled', { status: 'cancelled' }, { status: ['cancelled'] }),
    list(', severity critical', { severity: 'critical' }, { severity: ['critical'] }),
    list(', role follower', { role: 'follower' }, { role: ['follower'] }),
    list(', rarest type', { type: 'question' }, { type: 'question' }),
    list(', a type there is not', { type: 'nothing_like_it' }, { type: 'nothing_like_it' }),
    list(', one group', { group: group.groupId ?? '' }, { group: group.groupId ?? '' }),
    list(
      ', critical followers of one type',
      { severity: 'critical', role: 'follower', type: 'backup_failed' },
      { severity: ['critical'], role: ['follower'], type: 'backup_failed' },
    ),
    list(', without an owner', { owner: 'none' }, { owner: 'none' }),
    list(', mine', { owner: 'me' }, { owner: 'anna' }),
    list(', three days a month ago', month, month),
    list(', a day that was never', never, never),
    list(', search common', { q: 'replication' }, { q: 'replication' }),
    list(', search one shard', { q: 'shard-1234' }, { q: 'shard-1234' }),
    list(', search nothing', { q: 'no such words' }, { q: 'no such words' }),
    list(', search two letters', { q: 'di' }, { q: 'di' }),
    list(', search two letters, nothing', { q: 'zq' }, { q: 'zq' }),
    list(', search alert by name', { q: 'DiskPressure' }, { q: 'DiskPressure' }),
    list(', search label of one', { q: 'shard=shard-1234' }, { q: 'shard=shard-1234' }),
    list(', search label of many', { q: 'alertname=disk_pressure' }, { q: 'alertname=disk_pressure' }),
    list(', search and status', { q: 'tenant-77', status: 'escalated' }, { q: 'tenant-77', status: ['escalated'] }),
  ]
}

async function otherQuestions(db: Db): Promise<Measurement[]> {
  const long = await db
    .selectFrom('incident')
    .select('id')
    .orderBy('nextSeq', 'desc')
    .limit(1)
    .executeTakeFirstOrThrow()
  return [
    {
      name: 'timeline of 1,000 rows',
      path: `/incidents/${long.id}/events?limit=200`,
      query: () => eventsOf(db, long.id, { limit: 1_000 }),
    },
    { name: 'surroundings', path: `/incidents/${long.id}/surroundings` },
    { name: 'approvals, pending', path: '/approvals?status=pending&limit=100' },
    { name: 'approvals, all', path: '/approvals?limit=30' },
    { name: 'alerts', path: '/alerts', query: () => listAlerts(systemScope(db), {}, { before: null, limit: 51 }) },
    {
      name: 'alerts, firing',
      path: '/alerts?status=firing',
      query: () => listAlerts(systemScope(db), { status: 'firing' }, { before: null, limit: 51 }),
    },
    {
      name: 'alerts, search nothing',
      path: '/alerts?q=nothing',
      query: () => listAlerts(systemScope(db), { q: 'nothing' }, { before: null, limit: 51 }),
    },
    { name: 'usage, 7 days', path: '/usage?days=7', query: () => usageOf(systemScope(db), 7) },
    { name: 'reports, 12 weeks', path: '/reports', query: () => reportOf(systemScope(db), lastDays(84)) },
    {
      name: 'reports, all incidents',
      path: `/reports?since=${lastDays(200).since}`,
      query: () => reportOf(systemScope(db), lastDays(200)),
    },
    { name: 'usage, 90 days', path: '/usage?days=90', query: () => usageOf(systemScope(db), 90) },
    { name: 'audit', path: '/audit', query: () => listAudit(systemScope(db), {}, { before: null, limit: 51 }) },
    {
      name: 'audit, of one person',
      path: '/audit?who=nobody',
      query: () => listAudit(systemScope(db), { who: 'nobody' }, { before: null, limit: 51 }),
    },
    { name: 'capability gaps', path: '/capability-gaps' },
    {
      // Has no path: over HTTP, the request would wait for Temporal, which does not run here.
      name: 'status',
      query: () => Promise.all([backlogOf(systemScope(db)), modelHealth(db)]),
    },
    { name: 'metrics', path: '/metrics' },
  ]
}

function columns(what: string, times: number[] | null): Record<string, number | string> {
  return {
    [`${what} median (ms)`]: times ? round(median(times)) : '',
    [`${what} p99`]: times ? round(percentile(times, 99)) : '',
  }
}

async function timesOf(once: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  for (let call = -warmUp; call < calls; call += 1) {
    const startedAt = performance.now()
    await once()
    if (call >= 0) times.push(performance.now() - startedAt)
    // Ends early, because a query that takes seconds needs only a few runs.
    if (times.length >= 5 && median(times) > 3_000) return times
  }
  return times
}

async function ask(url: string, path: string, cookie: string): Promise<void> {
  const full = path === '/metrics' ? path : `/api/v1${path}`
  const response = await fetch(url + full, { headers: { cookie } })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
}

async function signIn(token: string, url: string): Promise<string> {
  const response = await fetch(`${url}/auth/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  const cookie = response.headers.get('set-cookie')?.split(';')[0]
  if (!cookie) throw new Error(`signing in: ${response.status}`)
  return cookie
}

async function countOf(db: Db): Promise<number> {
  const { count } = await db
    .selectFrom('incident')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

async function sizes(db: Db) {
  const { rows } = await sql<{ incidents: number; events: number; size: string }>`
    select (select count(*) from incident)::int as incidents, (select count(*) from incident_event)::int as events,
      pg_size_pretty(pg_database_size(current_database())) as size`.execute(db)
  return rows[0]!
}

/**
 * Checks for free disk space before an hour is spent, because PostgreSQL would notice a full disk
 * only at the end.
 */
function roomFor(bytes: number): void {
  const { bavail, bsize } = statfsSync(tmpdir())
  const free = bavail * bsize
  if (free < bytes * 1.5)
    throw new Error(
      `${gigabytes(bytes)} GB are needed in ${tmpdir()} and ${gigabytes(free)} GB are free: scale with EVENTS=`,
    )
}

function gigabytes(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1)
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
