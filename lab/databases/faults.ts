/**
 * Faults of the lab's databases: what is broken, its root, and its good end. Written before what
 * breaks them.
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

/** Nightshift's writes for databases; null: none repairs it, and a person decides. */
type DatabaseWrite = 'cancel_query' | 'terminate_session' | 'drop_replication_slot' | 'start_replica'

type DatabaseFaultRow = {
  /** The server that it is broken on. */
  on: DatabaseName
  does: string
  /** The root of everything else, in words; the broken fault has the exact session or slot. */
  root: string
  endsWell: string
  /** Writes that repair it, each alone. Empty where it is escalated. */
  repairedBy: DatabaseWrite[]
  /** The alert that it raises, of `rules.ts`. */
  alert: string
}

export const databaseFaultRows: Record<DatabaseFault, DatabaseFaultRow> = {
  db_idle_blocker: {
    on: 'pg-1',
    does: 'leaves a transaction idle that four sessions wait for',
    root: 'the session of shop-backoffice, idle in transaction: it blocks shop-billing and shop-mailer, and shop-billing blocks two of shop-stock',
    endsWell: 'that one session is ended; the four go on and stay connected',
    repairedBy: ['terminate_session'],
    alert: 'PostgresqlSessionsBlocked',
  },
  db_slot_keeps_wal: {
    on: 'pg-1',
    does: 'leaves the slot of a replica that was taken away; it keeps WAL',
    root: 'the slot pg_3, inactive, with what it keeps; the slot pg_2 of the replica is active beside it',
    endsWell: 'pg_3 is dropped; the slot of pg-2 is there and pg-2 streams',
    repairedBy: ['drop_replication_slot'],
    alert: 'PostgresqlUnusedReplicationSlot',
  },
  db_replica_stopped: {
    on: 'maria-2',
    does: 'stops the replica, as for maintenance, and nobody starts it',
    root: 'both threads of the replica are stopped, without an error',
    endsWell: 'the replica is started and has what maria-1 has',
    repairedBy: ['start_replica'],
    alert: 'MysqlSlaveSqlThreadNotRunning',
  },
  db_replay_held: {
    on: 'pg-2',
    does: 'runs a report on the replica that holds its replay',
    root: 'the active query of shop-report on pg-2: replay waits for its snapshot, since max_standby_streaming_delay is -1',
    endsWell: 'that query is cancelled or its session is ended; replay catches up, other sessions of pg-2 live',
    repairedBy: ['cancel_query', 'terminate_session'],
    alert: 'PostgresqlReplicationLag',
  },
  db_temp_files: {
    on: 'pg-1',
    does: 'runs a report whose temporary files fill the disk',
    root: 'the active query of shop-yearly, which holds the temporary files',
    endsWell: 'that query is cancelled or its session is ended; its files are gone, other sessions live',
    repairedBy: ['cancel_query', 'terminate_session'],
    alert: 'PostgresqlTempFilesHigh',
  },
  db_replica_duplicate_key: {
    on: 'maria-2',
    does: 'stops the replica by a row that was written on it',
    root: 'error 1062 of the applier: a row of shop.orders was written on maria-2, and maria-1 wrote the same key',
    endsWell: 'a person compares the two rows; nothing was skipped, the row on maria-2 is as it was',
    repairedBy: [],
    alert: 'MysqlSlaveSqlThreadNotRunning',
  },
  db_connections_exhausted: {
    on: 'pg-1',
    does: 'has the pool of a worker take nearly every connection',
    root: 'the pool shop-worker, by the number of its idle sessions',
    endsWell: 'a person bounds the pool; none of its sessions was ended, since it opens each again',
    repairedBy: [],
    alert: 'PostgresqlTooManyConnections',
  },
  db_wraparound: {
    on: 'pg-1',
    does: 'lets one table grow old, which vacuum is too slow for',
    root: 'the table order_events: its vacuum pauses 0.1 s for each page (autovacuum_vacuum_cost_limit=1), and its age passes autovacuum_freeze_max_age',
    endsWell: 'a person takes the brake off the table; its vacuum to prevent wraparound was left running',
    repairedBy: [],
    alert: 'PostgresqlTransactionIdWraparound',
  },
  db_bloat_prepared: {
    on: 'pg-1',
    does: 'leaves a prepared transaction, so that vacuum clears no dead row',
    root: 'the prepared transaction shop-settlement-4711, which holds the oldest xmin; carts bloats',
    endsWell: 'a person commits it or rolls it back, for only its coordinator knows which; it is still prepared',
    repairedBy: [],
    alert: 'PostgresqlTooManyDeadTuples',
  },
  db_plan_flip: {
    on: 'pg-1',
    does: 'has ANALYZE see no job that is ready, so that a join becomes a nested loop',
    root: 'the statistics of jobs: the last ANALYZE saw no row with state ready; the statement of shop-jobs that joins jobs and customers',
    endsWell: 'a person analyzes jobs; no statistics were changed, and no session of shop-jobs was ended',
    repairedBy: [],
    alert: 'PostgresqlSlowStatement',
  },
  db_index_lost: {
    on: 'pg-1',
    does: 'drops an index in a migration, so that a statement reads the whole table',
    root: 'the index orders_customer_id_idx, which the migration 20261127_drop_unused_indexes dropped',
    endsWell: 'a person builds it again, concurrently; nothing was built and no session was ended',
    repairedBy: [],
    alert: 'PostgresqlHighSequentialReads',
  },
  db_deadlocks: {
    on: 'pg-1',
    does: 'has two programs lock the same rows the other way round, in waves',
    root: 'shop-checkout and shop-stock-sync update the rows 1 and 2 of stock in opposite order',
    endsWell: 'a person has one of the programs change its order; neither session was ended',
    repairedBy: [],
    alert: 'PostgresqlDeadLocks',
  },
}
