import { rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { createToken, ensureOperator } from '../db/access/tokens.ts'
import { connect, type Db } from '../db/connect.ts'
import { firstRows, insertRows } from '../db/log/append.ts'
import { newId, sha256 } from '../domain/digest.ts'
import { type NewEvent, systemActor } from '../domain/event.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { median, percentile, report, startApi } from './stage.ts'

const incidents = Number(process.env.INCIDENTS ?? 100_000)
const rowsEach = Number(process.env.ROWS ?? 10)
const perTransaction = 50
const alertEveryMs = 1_200
const closedAt = '2025-01-01T00:00:00.000000Z'
const quietMs = 50_000

/**
 * Measures how the deployed API removes 100,000 closed incidents with whole chains from a durable
 * database, while 50 alerts a minute arrive over HTTP. Afterwards verifies all chains and
 * tombstones. The first 50 seconds measure ingest alone, before the removal. `INCIDENTS=` and
 * `ROWS=` scale the data.
 */
export async function benchRetention(): Promise<void> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: true })
  await migrateToLatest(postgres.url)
  const owner = connect(postgres.url, { owner: true, max: 2 })
  await fillClosed(owner)
  await sql`insert into platform_config (key, value) values ('retention.incidents', '400')`.execute(owner)
  const [before] = (await sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`.execute(owner))
    .rows
  const operatorId = await ensureOperator(owner, 'bench', 'admin')
  const token = await createToken(owner, { name: 'bench', role: 'admin', operatorId })
  const api = await startApi({ databaseUrl: postgres.url, dir })
  try {
    const quiet = await ingestUntil(api.url, token, async (ms) => ms > quietMs)
    const began = performance.now()
    const busy = await ingestUntil(api.url, token, async () => (await leftOf(owner)) === 0)
    const seconds = (performance.now() - began) / 1000
    const verified = await verifyAll(api.url, token)
    report('retention', {
      'incidents removed': incidents,
      'rows of the log each': rowsEach,
      'bytes an incident before': Math.round((before?.bytes ?? 0) / incidents),
      'removed in (s)': Math.round(seconds),
      'an alert without it, median / p99 (ms)': `${Math.round(median(quiet))} / ${Math.round(percentile(quiet, 99))}`,
      'an alert beside it, median / p99 / longest (ms)': `${Math.round(median(busy))} / ${Math.round(percentile(busy, 99))} / ${Math.round(Math.max(...busy))}`,
      'alerts beside it': busy.length,
      'tombstones verified': verified.tombstones,
      differences: verified.differences,
      'API (MB)': Math.round(api.residentMb()),
      'load of the machine': loadavg()[0]?.toFixed(1) ?? '',
    })
  } finally {
    await api.stop()
    await owner.destroy()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

/**
 * Creates incidents that are a year old. Each incident was opened by an alert, investigated and
 * resolved. The product's own code writes the whole chains.
 */
async function fillClosed(owner: Db): Promise<void> {
  for (let made = 0; made < incidents; made += perTransaction) {
    await owner.transaction().execute(async (trx) => {
      const ids = Array.from({ length: perTransaction }, () => newId('inc'))
      const chains = ids.map((id, n) => firstRows(id, closedAt, eventsOf(made + n)))
      const heads = chains.map((rows) => rows.at(-1)?.hash ?? '')
      await sql`
        insert into incident (id, type, severity, title, created_at, next_seq, head_hash, last_event_at)
        select id, 'disk_pressure', 'warning', 'Disk full', ${closedAt}::timestamptz, ${rowsEach + 1}, head, ${closedAt}::timestamptz
        from unnest(${ids}::text[], ${heads}::text[]) as made (id, head)`.execute(trx)
      await insertRows(trx, chains.flat())
      await sql`
        update incident set status = 'resolved', outcome = 'self_resolved', resolution = 'It is over.', closed_by = 'code',
          closed_at = ${closedAt}::timestamptz where id = any(${ids})`.execute(trx)
      await sql`
        insert into alert (id, source, fingerprint, status, name, labels, annotations, links, starts_at, ends_at, end_received_at, incident_id, raw)
        select 'alr_' || id, 'alertmanager', id, 'resolved', 'disk_pressure', '{"alertname": "disk_pressure"}', '{}', '{}',
          ${closedAt}::timestamptz, ${closedAt}::timestamptz, ${closedAt}::timestamptz, id, '{}' from unnest(${ids}::text[]) as made (id)`.execute(
        trx,
      )
    })
    if (made % 10_000 === 0) console.log(`  ${made} of ${incidents} incidents`)
  }
  await sql`vacuum (analyze)`.execute(owner)
}

const opened = { type: 'disk_pressure', severity: 'warning', title: 'Disk full', resource: null } as const

function eventsOf(n: number): NewEvent[] {
  const works = Array.from({ length: rowsEach - 2 }, (_, row) => ({
    ...{ kind: 'noted', actor: systemActor, detail: `Look ${row} of ${n}` },
    metadata: { code: 'quiet', text: Array.from({ length: 12 }, (_, part) => sha256(`${n} ${row} ${part}`)).join(' ') },
  }))
  return [
    { kind: 'change_requested', actor: systemActor, detail: 'Disk full', metadata: { opened } },
    ...works,
    { kind: 'resolved', actor: systemActor, detail: 'It is over.', metadata: { outcome: 'self_resolved', claims: [] } },
  ] as unknown as NewEvent[]
}

async function leftOf(owner: Db): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from (
      select from incident where closed_at = ${closedAt}::timestamptz limit 1) as left_over`.execute(owner)
  return rows[0]?.count ?? 0
}

/**
 * Sends an alert with a new identity every 1.2 s until stopped. Returns the milliseconds that each
 * request took.
 */
async function ingestUntil(url: string, token: string, isOver: (ms: number) => Promise<boolean>): Promise<number[]> {
  const took: number[] = []
  const began = performance.now()
  for (let n = 0; !(await isOver(performance.now() - began)); n += 1) {
    const labels = { alertname: `bench_${n % 20}`, instance: newId('x') }
    const alert = { status: 'firing', labels, annotations: {}, startsAt: new Date().toISOString() }
    const at = performance.now()
    const response = await fetch(`${url}/api/v1/ingest/alertmanager`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ version: '4', status: 'firing', receiver: 'x', alerts: [alert] }),
    })
    if (response.status !== 202) throw new Error(`an alert was answered ${response.status}: ${await response.text()}`)
    took.push(performance.now() - at)
    await sleep(Math.max(0, alertEveryMs - (performance.now() - at)))
  }
  return took
}

async function verifyAll(url: string, token: string): Promise<{ tombstones: number; differences: number }> {
  let [cursor, tombstones, differences] = ['', 0, 0]
  do {
    const response = await fetch(`${url}/api/v1/verify?limit=100${cursor ? `&cursor=${cursor}` : ''}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const page = (await response.json()) as {
      nextCursor: string | null
      differences: unknown[]
      checked: Record<string, number>
    }
    tombstones += page.checked.tombstones ?? 0
    differences += page.differences.length
    if (page.differences.length > 0) console.log(page.differences.slice(0, 3))
    cursor = page.nextCursor ?? ''
  } while (cursor !== '')
  return { tombstones, differences }
}
