import { WrongTarget } from '../state.ts'
import { type DatabaseDrawer, serverNamed, startClients } from './drawer.ts'
import type { DatabaseName } from './faults.ts'
import { askMariadb, untilApplied } from './mariadb.ts'
import { appUrl, rowsOn, sessionOf } from './waits.ts'
import type { DatabaseFaultWork } from './work.ts'

/** Defines faults of replication: an unread slot, a held replay, a stopped or diverged replica. */

/** The slot of a removed replica. */
const lostSlot = 'pg_3'
/** The most bytes of kept log; more is a fault. */
const maxKeptBytes = 16_000_000

export const slotKeepsWal: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    const message = `select pg_logical_emit_message(false, 'shop', repeat('x', 1000000))`
    await rowsOn(
      drawer,
      'pg-1',
      `select pg_create_physical_replication_slot('${lostSlot}', true)`,
      ...Array(40).fill(message),
    )
  },
  async see(drawer) {
    const rows = await rowsOn<{ slot_name: string; kept: string }>(
      drawer,
      'pg-1',
      `select slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) as kept from pg_replication_slots
       where not active and pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > ${maxKeptBytes}`,
    )
    return (
      rows.map(({ slot_name, kept }) => `slot ${slot_name} is inactive and keeps ${kept} bytes of WAL`).join(', ') ||
      null
    )
  },
  async heal(drawer) {
    await rowsOn(
      drawer,
      'pg-1',
      `select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '${lostSlot}' and not active`,
      'checkpoint',
    )
  },
}

export const replayHeld: DatabaseFaultWork = {
  applications: ['shop-report'],
  async breakIn(lab, drawer) {
    // Pauses at each row, like a large report that stays active and keeps one snapshot.
    const report = `select c.region, sum(o.cents), max(pg_sleep(30)::text) from orders o join customers c on c.id = o.customer_id group by c.region`
    await startClients(lab, drawer, 'db_replay_held', [
      { url: appUrl(drawer, 'pg-2'), application: 'shop-report', steps: [report] },
    ])
    // Lets vacuum remove rows that the report may still need.
    await rowsOn(drawer, 'pg-1', 'update stock set pieces = pieces where id > 40', 'vacuum stock')
  },
  async see(drawer) {
    const [row] = await rowsOn<{ seconds: number; behind: string; holder: string | null }>(
      drawer,
      'pg-2',
      `select extract(epoch from now() - pg_last_xact_replay_timestamp())::float8 as seconds,
         pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) as behind,
         (select application_name || ' (' || pid || ')' from pg_stat_activity
          where backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid() order by query_start limit 1) as holder`,
    )
    if (!row || row.seconds < 2 || Number(row.behind) === 0) return null
    return `replay is ${row.seconds.toFixed(1)} s and ${row.behind} bytes behind; the longest query runs in ${row.holder ?? 'no session'}`
  },
  findRoot: (drawer) => sessionOf(drawer, 'pg-2', 'shop-report'),
}

const onMariadb = async (drawer: DatabaseDrawer, name: DatabaseName, ...statements: string[]) =>
  await askMariadb(serverNamed(drawer, name), drawer.secrets, statements)

type ReplicaStatus = { io: string; sql: string; sqlErrno: string; position: string }

export async function replicaStatus(drawer: DatabaseDrawer): Promise<ReplicaStatus> {
  const [row] = await onMariadb(drawer, 'maria-2', 'show slave status')
  const [at] = await onMariadb(drawer, 'maria-2', 'select @@gtid_slave_pos as position')
  return {
    io: row?.Slave_IO_Running ?? 'none',
    sql: row?.Slave_SQL_Running ?? 'none',
    sqlErrno: row?.Last_SQL_Errno ?? '0',
    position: at?.position ?? '',
  }
}

async function isReplicating(drawer: DatabaseDrawer): Promise<boolean> {
  const { io, sql } = await replicaStatus(drawer)
  return io === 'Yes' && sql === 'Yes'
}

async function needReplicating(drawer: DatabaseDrawer): Promise<void> {
  if (!(await isReplicating(drawer))) throw new WrongTarget('maria-2 does not replicate already')
}

export const replicaStopped: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    await needReplicating(drawer)
    await onMariadb(drawer, 'maria-2', 'stop slave')
  },
  async see(drawer) {
    const { io, sql, sqlErrno } = await replicaStatus(drawer)
    if (sqlErrno !== '0' || (io === 'Yes' && sql === 'Yes')) return null
    return `the threads of maria-2: IO ${io}, SQL ${sql}, no error`
  },
  async check(drawer) {
    const [primary, replica] = [serverNamed(drawer, 'maria-1'), serverNamed(drawer, 'maria-2')]
    const isApplied = await untilApplied(replica, primary, drawer.secrets, 8)
    const [last] = await onMariadb(drawer, 'maria-2', 'select max(id) as id from shop.orders')
    const digest = `select count(*) as count, sum(crc32(concat_ws('|', id, customer_id, state, cents))) as sum from shop.orders where id <= ${Number(last?.id ?? 0)}`
    const [[here], [there]] = [await onMariadb(drawer, 'maria-1', digest), await onMariadb(drawer, 'maria-2', digest)]
    const isEqual = isApplied && JSON.stringify(here) === JSON.stringify(there)
    return [
      {
        name: 'maria-2 has the same rows as maria-1',
        ok: isEqual,
        detail: `${there?.count} of ${here?.count} orders, ${isApplied ? 'caught up' : 'behind'}`,
      },
    ]
  },
  async heal(drawer) {
    await onMariadb(drawer, 'maria-2', 'start slave')
  },
}

/** The row that somebody wrote directly on the replica. */
const localOrder = `customer_id = 399 and state = 'by hand'`

export const replicaDuplicateKey: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    await needReplicating(drawer)
    const [next] = await onMariadb(drawer, 'maria-1', 'select max(id) + 2 as id from shop.orders')
    const insert = `insert into shop.orders (id, customer_id, state, cents) values (${Number(next?.id)}, 399, 'by hand', 1)`
    await onMariadb(drawer, 'maria-2', 'set sql_log_bin = 0', insert)
  },
  async see(drawer) {
    const { sql, sqlErrno, position } = await replicaStatus(drawer)
    return sqlErrno === '1062' ? `the SQL thread of maria-2: ${sql}, error 1062 at ${position}` : null
  },
  async readFacts(drawer) {
    const [row] = await onMariadb(drawer, 'maria-2', `select id, cents from shop.orders where ${localOrder}`)
    const { position } = await replicaStatus(drawer)
    return { 'position of the SQL thread': position, 'row on maria-2': `${row?.id} ${row?.cents}` }
  },
  async heal(drawer) {
    await onMariadb(
      drawer,
      'maria-2',
      'set sql_log_bin = 0',
      `delete from shop.orders where ${localOrder}`,
      'start slave',
    )
    await untilApplied(serverNamed(drawer, 'maria-2'), serverNamed(drawer, 'maria-1'), drawer.secrets)
  },
}
