import { setTimeout as sleep } from 'node:timers/promises'
import { toTimeSql } from '../../clients/databases/postgres.ts'
import { formatCount } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import { fitSummary } from '../kind.ts'
import { readBlocking } from './blocking.ts'
import type { AskDatabase } from './connect.ts'
import type { Question } from './question.ts'
import { describeSession, type SqlRow } from './sessions.ts'
import { perSecond, readTwice } from './twice.ts'

/**
 * The databases of a server: size, age against wraparound, deadlocks, temporary files, and the
 * settings that limit these.
 */

const databasesSql = `
  select d.datname as database, case when has_database_privilege(d.oid, 'connect') then pg_database_size(d.oid) end as bytes,
    age(d.datfrozenxid) as age, mxid_age(d.datminmxid) as multixact_age, s.numbackends as sessions,
    s.deadlocks, s.temp_files, s.temp_bytes, s.conflicts, s.xact_rollback as rollbacks, s.xact_commit as commits,
    ${toTimeSql('s.stats_reset')} as counted_since
  from pg_database d join pg_stat_database s on s.datid = d.oid where d.datallowconn
  order by age(d.datfrozenxid) desc limit 30`

const serverSql = `
  select current_setting('server_version') as version, ${toTimeSql('pg_postmaster_start_time()')} as started,
    ${toTimeSql('pg_conf_load_time()')} as settings_loaded, pg_is_in_recovery() as replica,
    current_setting('autovacuum') as autovacuum, current_setting('autovacuum_freeze_max_age')::bigint as freeze_max_age,
    current_setting('work_mem') as work_mem, current_setting('temp_file_limit') as temp_file_limit`

const watchMs = 4_000
const everyMs = 250

/**
 * Watches for a deadlock: sessions that wait for each other. The server ends one session after
 * deadlock_timeout, and only the server's log then names them.
 */
async function watchCircles(ask: AskDatabase): Promise<string[]> {
  const until = performance.now() + watchMs
  while (performance.now() < until) {
    const { roots } = await readBlocking(ask)
    const circle = roots.find(({ root }) => root?.state.endsWith('waits for a lock'))
    if (circle?.root) return [describeSession(circle.root), ...circle.tree.map(({ text }) => text)].slice(0, 4)
    await sleep(everyMs)
  }
  return []
}

/**
 * The age in transaction ids at which the server refuses writes
 * (https://www.postgresql.org/docs/current/routine-vacuuming.html).
 */
const wraparoundAt = 2_147_483_647 - 3_000_000

export const databases: Question = {
  name: 'databases',
  asks: 'sizes, wraparound, deadlocks, temporary files',
  async read(ask) {
    const { rows, seconds } = await readTwice(ask, databasesSql, {
      key: 'database',
      counters: ['deadlocks', 'temp_bytes'],
    })
    const items = rows.map(
      ({ row, now }): SqlRow => ({
        ...row,
        ...(now.deadlocks ? { deadlocks_a_minute: perSecond(now.deadlocks * 60, seconds) } : {}),
        ...(now.temp_bytes ? { temp_bytes_a_second: perSecond(now.temp_bytes, seconds) } : {}),
      }),
    )
    const circle = items.some(({ deadlocks }) => Number(deadlocks) > 0) ? await watchCircles(ask) : []
    const [server = {}] = (await ask({ sql: serverSql })).rows
    const oldest = Math.max(0, ...items.map(({ age }) => Number(age)))
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        ...server,
        transactionsLeft: wraparoundAt - oldest,
        ...(circle.length > 0 && { waitedForEachOther: circle }),
        databases: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: items.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: false,
    }
  },
  say: ({ databases: shown, version }) => {
    const [first] = (shown ?? []) as SqlRow[]
    const size = first?.bytes == null ? '' : ` (${formatSize(Number(first.bytes))})`
    return `PostgreSQL ${version} with ${formatCount((shown as unknown[]).length, 'database')}; the oldest is ${first?.database}${size}, ${first?.age} transactions of age`
  },
}
