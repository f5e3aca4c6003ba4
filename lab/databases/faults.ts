/**
 * Faults of the lab's databases: each fault, its root cause, and its good end. This list was
 * written before the code that breaks the faults in.
 */
export const databaseFaults = [
  'db_idle_blocker',
  'db_slot_keeps_wal',
  'db_replica_stopped',
  'db_replay_held',
  'db_temp_files',
  'db_replica_duplicate_key',
  'db_connections_exhausted',
  'db_wraparound',
  'db_bloat_prepared',
  'db_plan_flip',
  'db_index_lost',
  'db_deadlocks',
] as const
export type DatabaseFault = (typeof databaseFaults)[number]

export const isDatabaseFault = (name: string): name is DatabaseFault => databaseFaults.some((each) => each === name)

export const databaseNames = ['pg-1', 'pg-2', 'maria-1', 'maria-2'] as const
export type DatabaseName = (typeof databaseNames)[number]

/** Nightshift's tools that write to databases. */
type DatabaseWrite = 'cancel_query' | 'terminate_session' | 'drop_replication_slot' | 'start_replica'

type DatabaseFaultRow = {
  /** The server that the fault breaks. */
  on: DatabaseName
  does: string
  /** The root cause in words. The exact session or slot is recorded when the fault is broken in. */
  root: string
  endsWell: string
  /** The tools that repair the fault, each by itself. Empty if only a person may repair it. */
  repairedBy: DatabaseWrite[]
  /** The name of the fault's alert in `rules.ts`. */
  alert: string
}

export const databaseFaultRows: Record<DatabaseFault, DatabaseFaultRow> = {
  db_idle_blocker: {
    on: 'pg-1',
    does: 'leaves a transaction idle; four sessions wait for its locks',
    root: 'the session of shop-backoffice, idle in transaction: it blocks shop-billing and shop-mailer, and shop-billing blocks two of shop-stock',
    endsWell: 'the session of shop-backoffice is ended; the four others go on and stay connected',
    repairedBy: ['terminate_session'],
    alert: 'PostgresqlSessionsBlocked',
  },
  db_slot_keeps_wal: {
    on: 'pg-1',
    does: 'leaves the slot of a replica that is gone; the slot keeps WAL',
    root: 'the slot pg_3, which is inactive, with the bytes of WAL that it keeps; the slot pg_2 of the replica is active',
    endsWell: 'pg_3 is dropped; pg-2 still has its slot and streams',
    repairedBy: ['drop_replication_slot'],
    alert: 'PostgresqlUnusedReplicationSlot',
  },
  db_replica_stopped: {
    on: 'maria-2',
    does: 'stops the replica as if for maintenance, and nobody starts it again',
    root: 'both threads of the replica are stopped, and neither reports an error',
    endsWell: 'the replica is started and has the same rows as maria-1',
    repairedBy: ['start_replica'],
    alert: 'MysqlSlaveSqlThreadNotRunning',
  },
  db_replay_held: {
    on: 'pg-2',
    does: 'runs a report on the replica, which blocks its replay',
    root: 'the active query of shop-report on pg-2: replay waits for its snapshot, since max_standby_streaming_delay is -1',
    endsWell:
      'that query is cancelled or its session is ended; replay catches up, and the other sessions of pg-2 stay connected',
    repairedBy: ['cancel_query', 'terminate_session'],
    alert: 'PostgresqlReplicationLag',
  },
  db_temp_files: {
    on: 'pg-1',
    does: 'runs a report; its temporary files fill the disk',
    root: 'the active query of shop-yearly, which wrote the temporary files',
    endsWell:
      'that query is cancelled or its session is ended; its files are gone, and the other sessions stay connected',
    repairedBy: ['cancel_query', 'terminate_session'],
    alert: 'PostgresqlTempFilesHigh',
  },
  db_replica_duplicate_key: {
    on: 'maria-2',
    does: 'writes a row on the replica, which stops it',
    root: 'error 1062 of the SQL thread: a row of shop.orders was written on maria-2, and maria-1 wrote the same key',
    endsWell: 'a person compares the two rows; no event was skipped, and the row on maria-2 is unchanged',
    repairedBy: [],
    alert: 'MysqlSlaveSqlThreadNotRunning',
  },
  db_connections_exhausted: {
    on: 'pg-1',
    does: 'lets the pool of a worker take nearly every connection',
    root: 'the pool shop-worker, which holds most connections as idle sessions',
    endsWell: 'a person limits the pool; none of its sessions was ended, because the pool reopens them',
    repairedBy: [],
    alert: 'PostgresqlTooManyConnections',
  },
  db_wraparound: {
    on: 'pg-1',
    does: 'lets the oldest transaction id of a table age; vacuum is too slow',
    root: 'the table order_events: its vacuum pauses 0.1 s for each page (autovacuum_vacuum_cost_limit=1), and its age passes autovacuum_freeze_max_age',
    endsWell: 'a person resets the vacuum settings of the table; its vacuum against wraparound still runs',
    repairedBy: [],
    alert: 'PostgresqlTransactionIdWraparound',
  },
  db_bloat_prepared: {
    on: 'pg-1',
    does: 'leaves a prepared transaction; vacuum cannot remove dead rows',
    root: 'the prepared transaction shop-settlement-4711, which holds the oldest xmin; carts bloats',
    endsWell:
      'the transaction is still prepared; a person commits it or rolls it back, because only its coordinator knows which',
    repairedBy: [],
    alert: 'PostgresqlTooManyDeadTuples',
  },
  db_plan_flip: {
    on: 'pg-1',
    does: 'runs ANALYZE while no job is ready; a join becomes a nested loop',
    root: 'the statistics of jobs: the last ANALYZE saw no row with state ready; so the statement of shop-jobs that joins jobs and customers is slow',
    endsWell: 'a person runs ANALYZE on jobs; no statistics were changed, and no session of shop-jobs was ended',
    repairedBy: [],
    alert: 'PostgresqlSlowStatement',
  },
  db_index_lost: {
    on: 'pg-1',
    does: 'drops an index in a migration; a statement then reads the whole table',
    root: 'the index orders_customer_id_idx, which the migration 20261127_drop_unused_indexes dropped',
    endsWell: 'a person builds the index again, concurrently; no index was built and no session was ended',
    repairedBy: [],
    alert: 'PostgresqlHighSequentialReads',
  },
  db_deadlocks: {
    on: 'pg-1',
    does: 'lets two programs lock the same rows in opposite order, again and again',
    root: 'shop-checkout and shop-stock-sync update rows 1 and 2 of stock in opposite order',
    endsWell: 'a person changes the order in one of the programs; neither session was ended',
    repairedBy: [],
    alert: 'PostgresqlDeadLocks',
  },
}
