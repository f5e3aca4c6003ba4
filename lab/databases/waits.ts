import { setTimeout as sleep } from 'node:timers/promises'
import { type DatabaseDrawer, serverNamed, startClients } from './drawer.ts'
import type { DatabaseName } from './faults.ts'
import { maxConnections, runSql } from './postgresql.ts'
import { serverUrl } from './server.ts'
import type { ShopSession } from './session.ts'
import { readSessions } from './sessions.ts'
import type { DatabaseFaultWork } from './work.ts'

/**
 * Defines faults of sessions: sessions that block others, too many connections, a query that fills
 * the disk.
 */

export const appUrl = (drawer: DatabaseDrawer, name: DatabaseName): string =>
  serverUrl(serverNamed(drawer, name), 'shop_app', drawer.secrets.app)

/** Reads rows on a server as the admin. */
export const rowsOn = async <Row extends Record<string, unknown>>(
  drawer: DatabaseDrawer,
  name: DatabaseName,
  ...statements: string[]
): Promise<Row[]> => await runSql<Row>(serverNamed(drawer, name), drawer.secrets, statements)

export async function sessionOf(
  drawer: DatabaseDrawer,
  name: DatabaseName,
  application: string,
): Promise<ShopSession | null> {
  const all = await readSessions(drawer, [name])
  const found = all.find((each) => each.application === application)
  return found ? { server: name, pid: found.pid, startedAt: found.startedAt, application: found.application } : null
}

const setNote = (id: number) => `update orders set note = 'checked' where id = ${id}`

export const idleBlocker: DatabaseFaultWork = {
  applications: ['shop-backoffice', 'shop-billing', 'shop-mailer', 'shop-stock'],
  async breakIn(lab, drawer) {
    const url = appUrl(drawer, 'pg-1')
    // Gives each pair of sessions its own row, because two sessions that wait for one row would
    // also wait for each other.
    await startClients(lab, drawer, 'db_idle_blocker', [
      { url, application: 'shop-backoffice', steps: ['begin', setNote(1), setNote(3), 'select count(*) from stock'] },
      { url, application: 'shop-billing', steps: ['begin', setNote(2), setNote(4), setNote(1)], after: ['commit'] },
      { url, application: 'shop-mailer', steps: [setNote(3)] },
      { url, application: 'shop-stock', steps: [setNote(2)] },
      { url, application: 'shop-stock', steps: [setNote(4)] },
    ])
  },
  async see(drawer) {
    const rows = await rowsOn<{ pid: number; application_name: string; blocked: string }>(
      drawer,
      'pg-1',
      `select a.pid, a.application_name, count(*) as blocked from pg_stat_activity a join pg_stat_activity w on a.pid = any(pg_blocking_pids(w.pid))
       where a.state like 'idle in transaction%' group by 1, 2`,
    )
    return (
      rows
        .map((row) => `${row.application_name} (${row.pid}) is idle in transaction and blocks ${row.blocked}`)
        .join(', ') || null
    )
  },
  findRoot: (drawer) => sessionOf(drawer, 'pg-1', 'shop-backoffice'),
}

const take = (id: number) => `update stock set pieces = pieces - 1 where id = ${id}`

async function deadlocksSoFar(drawer: DatabaseDrawer): Promise<number> {
  const [row] = await rowsOn<{ deadlocks: string }>(
    drawer,
    'pg-1',
    `select deadlocks from pg_stat_database where datname = 'shop'`,
  )
  return Number(row?.deadlocks ?? 0)
}

export const deadlocks: DatabaseFaultWork = {
  applications: ['shop-checkout', 'shop-stock-sync'],
  async breakIn(lab, drawer) {
    const before = await deadlocksSoFar(drawer)
    const often = { url: appUrl(drawer, 'pg-1'), everyMs: 2_500, pauseMs: 300 }
    await startClients(lab, drawer, 'db_deadlocks', [
      { ...often, application: 'shop-checkout', steps: ['begin', take(1), take(2), 'commit'] },
      { ...often, application: 'shop-stock-sync', steps: ['begin', take(2), take(1), 'commit'] },
    ])
    const until = Date.now() + 15_000
    while ((await deadlocksSoFar(drawer)) <= before && Date.now() < until) await sleep(200)
  },
  async see(drawer) {
    const [row] = await rowsOn<{ both: boolean; deadlocks: string }>(
      drawer,
      'pg-1',
      `select (select count(distinct application_name) from pg_stat_activity where application_name in ('shop-checkout', 'shop-stock-sync')) = 2 as both,
         deadlocks from pg_stat_database where datname = 'shop'`,
    )
    if (!row?.both || Number(row.deadlocks) === 0) return null
    return `${row.deadlocks} deadlocks counted; shop-checkout and shop-stock-sync still run`
  },
}

/**
 * The connections that the pool leaves free, besides the three that are reserved for superusers.
 */
const leftFree = 3
const reserved = 3

export const connectionsExhausted: DatabaseFaultWork = {
  applications: ['shop-worker'],
  async breakIn(lab, drawer) {
    const [row] = await rowsOn<{ used: string }>(
      drawer,
      'pg-1',
      `select count(*) as used from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    )
    const size = Math.max(0, maxConnections - reserved - leftFree - Number(row?.used ?? 0))
    const session = { url: appUrl(drawer, 'pg-1'), application: 'shop-worker', steps: ['select 1'], isLasting: true }
    await startClients(lab, drawer, 'db_connections_exhausted', Array(size).fill(session))
  },
  async see(drawer) {
    const [row] = await rowsOn<{ used: string; pool: string }>(
      drawer,
      'pg-1',
      `select count(*) as used, count(*) filter (where application_name = 'shop-worker') as pool
       from pg_stat_activity where backend_type = 'client backend'`,
    )
    const [used, pool] = [Number(row?.used ?? 0), Number(row?.pool ?? 0)]
    return used > maxConnections * 0.8 && pool > maxConnections / 4
      ? `shop-worker holds ${pool} of ${maxConnections} connections, ${used} are in use`
      : null
  },
}

/** Bytes of temporary files that are assumed to fill the disk. */
const maxTemporaryBytes = 100_000_000

export const temporaryFiles: DatabaseFaultWork = {
  applications: ['shop-yearly'],
  async breakIn(lab, drawer) {
    // Pauses at each row, like slow work. A sort keeps its files until its last row is fetched.
    const report = `select line.customer_id, pg_sleep(60) from
      (select o.customer_id, repeat(md5(o.id::text || y), 40) as text from orders o cross join generate_series(1, 2) y order by 2) line`
    await startClients(lab, drawer, 'db_temp_files', [
      { url: appUrl(drawer, 'pg-1'), application: 'shop-yearly', steps: [report] },
    ])
  },
  async see(drawer) {
    const [row] = await rowsOn<{ bytes: string; files: string }>(
      drawer,
      'pg-1',
      'select coalesce(sum(size), 0) as bytes, count(*) as files from pg_ls_tmpdir()',
    )
    const bytes = Number(row?.bytes ?? 0)
    return bytes > maxTemporaryBytes ? `${row?.files} temporary files hold ${bytes} bytes` : null
  },
  findRoot: (drawer) => sessionOf(drawer, 'pg-1', 'shop-yearly'),
}
