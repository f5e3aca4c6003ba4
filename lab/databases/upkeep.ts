import pg from 'pg'
import { type DatabaseDrawer, serverNamed } from './drawer.ts'
import { runSql } from './postgresql.ts'
import { customerStatement, jobsStatement } from './schema.ts'
import { serverUrl } from './server.ts'
import { rowsOn } from './waits.ts'
import type { DatabaseFaultWork } from './work.ts'

/**
 * Defines faults of maintenance that only a person may repair: a blocked vacuum, a stale ANALYZE, a
 * migration.
 */

const table = 'order_events'
/** Transaction ids that the fault uses up: half more than autovacuum_freeze_max_age. */
const burntIds = 150_000

export const wraparound: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    await rowsOn(
      drawer,
      'pg-1',
      // Rewrites the rows, because a vacuum skips rows that were frozen before, and would end at
      // once.
      `update ${table} set what = what`,
      `alter table ${table} set (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)`,
      'set synchronous_commit = off',
      `do $$ begin for n in 1..${burntIds} loop perform pg_current_xact_id(); commit; end loop; end $$`,
    )
  },
  async see(drawer) {
    const [row] = await rowsOn<{ age: number; max: number; options: string[] | null; works: boolean }>(
      drawer,
      'pg-1',
      `select age(relfrozenxid) as age, current_setting('autovacuum_freeze_max_age')::int as max, reloptions as options,
         exists (select 1 from pg_stat_progress_vacuum v where v.relid = c.oid) as works from pg_class c where relname = '${table}'`,
    )
    if (!row || row.age <= row.max || !row.options?.includes('autovacuum_vacuum_cost_limit=1')) return null
    return `the oldest transaction id of ${table} has age ${row.age}, the maximum is ${row.max}; its vacuum ${row.works ? 'runs slowly' : 'waits'}`
  },
  async readFacts(drawer) {
    const [row] = await rowsOn<{ options: string[]; frozen: string }>(
      drawer,
      'pg-1',
      `select reloptions as options, relfrozenxid::text as frozen from pg_class where relname = '${table}'`,
    )
    return {
      [`settings of ${table}`]: String(row?.options),
      [`oldest transaction id of ${table}`]: String(row?.frozen),
    }
  },
  async heal(drawer) {
    // Ends the slowed vacuum first: a reset of the settings waits for the vacuum, which blocks
    // every change and starts again.
    const until = Date.now() + 20_000
    const end = `select pg_terminate_backend(pid, 2000) from pg_stat_activity where backend_type = 'autovacuum worker' and query like '%${table}%'`
    const release = `alter table ${table} reset (autovacuum_vacuum_cost_delay, autovacuum_vacuum_cost_limit)`
    for (;;) {
      const error = await rowsOn(drawer, 'pg-1', `set lock_timeout = '300ms'`, end, release).then(() => null, Error)
      if (error === null) break
      if (Date.now() > until) throw error
    }
    await rowsOn(drawer, 'pg-1', end, 'vacuum (freeze)')
  },
}

const gid = 'shop-settlement-4711'

export const bloatPrepared: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    const url = serverUrl(serverNamed(drawer, 'pg-1'), 'shop_app', drawer.secrets.app)
    const client = new pg.Client({ connectionString: url, application_name: 'shop-settlement' })
    await client.connect()
    try {
      const steps = ['begin', 'update customers set tier = tier where id = 3999']
      for (const step of [...steps, `prepare transaction '${gid}'`]) await client.query(step)
    } finally {
      await client.end()
    }
    const update = 'update carts set items = items + 1'
    await rowsOn(drawer, 'pg-1', update, update, 'vacuum carts')
  },
  async see(drawer) {
    const [row] = await rowsOn<{ gid: string | null; transaction: string; dead: string }>(
      drawer,
      'pg-1',
      `select p.gid, p.transaction::text, t.n_dead_tup as dead from pg_stat_user_tables t left join pg_prepared_xacts p on p.gid = '${gid}'
       where t.relname = 'carts'`,
    )
    if (!row?.gid || Number(row.dead) < 10_000) return null
    return `${gid} is prepared (${row.transaction}); vacuum cannot remove the ${row.dead} dead rows of carts`
  },
  async readFacts(drawer) {
    const rows = await rowsOn<{ gid: string; at: string }>(
      drawer,
      'pg-1',
      'select gid, prepared::text as at from pg_prepared_xacts order by gid',
    )
    return { 'prepared transactions': rows.map(({ gid: name, at }) => `${name} of ${at}`).join(', ') }
  },
  async heal(drawer) {
    const rows = await rowsOn(drawer, 'pg-1', `select 1 from pg_prepared_xacts where gid = '${gid}'`)
    await rowsOn(drawer, 'pg-1', ...(rows.length > 0 ? [`rollback prepared '${gid}'`] : []), 'vacuum carts')
  },
}

async function planOf(drawer: DatabaseDrawer, statement: string): Promise<string[]> {
  const rows = await runSql<{ 'QUERY PLAN': string }>(serverNamed(drawer, 'pg-1'), drawer.secrets, [
    `explain (costs off) ${statement}`,
  ])
  return rows.map((row) => row['QUERY PLAN'])
}

export const planFlip: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    await rowsOn(
      drawer,
      'pg-1',
      `update jobs set state = 'done' where state = 'ready'`,
      'analyze jobs',
      `update jobs set state = 'ready' where id % 20 = 0`,
    )
  },
  async see(drawer) {
    const plan = await planOf(drawer, jobsStatement)
    return plan.some((line) => line.includes('Nested Loop')) ? 'jobs and customers are joined by a nested loop' : null
  },
  async readFacts(drawer) {
    const [row] = await rowsOn<{ common: string; at: string }>(
      drawer,
      'pg-1',
      `select (select most_common_vals::text from pg_stats where tablename = 'jobs' and attname = 'state') as common,
         greatest(last_analyze, last_autoanalyze)::text as at from pg_stat_user_tables where relname = 'jobs'`,
    )
    return { 'states in the statistics of jobs': String(row?.common), 'last ANALYZE of jobs': String(row?.at) }
  },
  async heal(drawer) {
    await rowsOn(drawer, 'pg-1', 'vacuum (analyze) jobs')
  },
}

const migration = '20261127_drop_unused_indexes'
const index = 'orders_customer_id_idx'

export const indexLost: DatabaseFaultWork = {
  applications: [],
  async breakIn(_, drawer) {
    const note = `insert into schema_migrations (version) values ('${migration}') on conflict do nothing`
    await rowsOn(drawer, 'pg-1', `drop index ${index}`, note)
  },
  async see(drawer) {
    const plan = await planOf(drawer, customerStatement)
    return plan.some((line) => line.includes('Seq Scan on orders'))
      ? 'the orders of a customer are read by a sequential scan'
      : null
  },
  async readFacts(drawer) {
    const rows = await rowsOn<{ name: string }>(
      drawer,
      'pg-1',
      `select indexname as name from pg_indexes where tablename = 'orders' order by 1`,
    )
    return { 'indexes of orders': rows.map(({ name }) => name).join(', ') }
  },
  async heal(drawer) {
    await rowsOn(
      drawer,
      'pg-1',
      `create index if not exists ${index} on orders (customer_id)`,
      `delete from schema_migrations where version = '${migration}'`,
    )
  },
}
