import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { append } from '../db/append.ts'
import { connect, type Db } from '../db/connect.ts'
import { openIncident } from '../db/incidents.ts'
import { createToken, ensureOperator } from '../db/tokens.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { startApi } from './api-process.ts'
import { listen } from './listeners.ts'
import { median, percentile, report } from './report.ts'

const connections = Number(process.env.CONNECTIONS ?? 200)
const perSecond = Number(process.env.PER_SECOND ?? 50)
const seconds = Number(process.env.SECONDS ?? 60)
const dropEveryMs = 5_000
const incidents = 20
const arriveWithinMs = 60_000

/** Open pages while rows are written: does everybody hear everything, once, over connections that keep being cut off? */
export async function stream(): Promise<void> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url)
  const operatorId = await ensureOperator(db, 'bench', 'viewer')
  const token = await createToken(db, { name: 'bench', role: 'viewer', operatorId })
  const api = await startApi({ databaseUrl: postgres.url, dir })
  const idle = api.residentMb()
  const listeners = listen({ url: api.url, token, count: connections, dropEveryMs })
  await listeners.ready
  const rows = await writeRows(db)
  const deadline = performance.now() + arriveWithinMs
  while (listeners.heard(rows).some(({ missing }) => missing > 0) && performance.now() < deadline) await sleep(500)
  const busy = api.residentMb()
  listeners.end()
  const heard = listeners.heard(rows)
  const { delaysMs, counts } = listeners
  const most = (of: (each: (typeof heard)[number]) => number) => Math.max(...heard.map(of))
  report('stream', {
    connections,
    'rows written, each through append()': rows.length,
    'rows a second': Math.round(rows.length / seconds),
    'connections cut off and resumed': counts.reconnects,
    'turned away for now': counts.refused,
    'missing, worst connection (0)': most(({ missing }) => missing),
    'twice, worst connection (0)': most(({ duplicates }) => duplicates),
    'out of order, worst connection (0)': most(({ outOfOrder }) => outOfOrder),
    'row to page, median (ms)': Math.round(median(delaysMs)),
    'row to page, p99 (ms)': Math.round(percentile(delaysMs, 99)),
    'API without pages (MB)': idle,
    'API with them (MB)': busy,
  })
  await api.stop()
  await db.destroy()
  await postgres.stop()
  rmSync(dir, { recursive: true, force: true })
}

/** At an even pace, whatever a write takes: ids of the rows as they were committed. */
async function writeRows(db: Db): Promise<string[]> {
  const ids = await Promise.all(
    Array.from({ length: incidents }, (_, n) =>
      db.transaction().execute((trx) =>
        openIncident(trx, {
          type: 'disk_pressure',
          severity: 'warning' as const,
          severitySource: 'alert' as const,
          title: `Disk ${n} is full`,
          resource: null,
          requestedBy: null,
        }),
      ),
    ),
  )
  const startedAt = performance.now()
  const writes: Promise<string>[] = []
  for (let n = 0; n < perSecond * seconds; n += 1) {
    await sleep(Math.max(0, startedAt + (n * 1000) / perSecond - performance.now()))
    writes.push(writeRow(db, ids[n % incidents]?.id as string, n))
  }
  return await Promise.all(writes)
}

async function writeRow(db: Db, incidentId: string, n: number): Promise<string> {
  const text = `Row ${n}: ${'the replica is behind its primary '.repeat(8)}`
  const { event } = await db.transaction().execute((trx) =>
    append(trx, incidentId, null, {
      kind: 'commented' as const,
      actor: 'user:bench',
      detail: text,
      metadata: { text, confidence: null, action: null },
    }),
  )
  return String(event.id)
}
