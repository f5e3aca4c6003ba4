import type { AskDatabase } from '../connect.ts'
import type { OpenTransactions } from '../reader.ts'
import { describeSession } from '../sessions.ts'
import { sessionColumns, sessionTables, toSession } from './sessions.ts'

/**
 * Lists open InnoDB transactions, the oldest first, and long statements outside of a transaction.
 */

export async function readTransactions(ask: AskDatabase): Promise<OpenTransactions> {
  const { server } = await ask({ sql: 'select 1' })
  const { rows } = await ask({
    sql: `select ${sessionColumns(server)}, case when t.trx_started is null then p.time end as runs_seconds
    from ${sessionTables(server)}
    where p.id <> connection_id() and p.user not in ('system user', 'event_scheduler') and p.command not like 'Binlog Dump%'
      and (t.trx_started is not null or (p.command in ('Query', 'Execute') and p.time > 10))
    order by coalesce(timestampdiff(second, t.trx_started, now()), p.time) desc, t.trx_id limit 20`,
  })
  const long = rows.map((row) => ({
    ...toSession(row),
    openSeconds: Number(row.open_seconds ?? row.runs_seconds ?? 0),
    // Is always unknown for one transaction: the server shows only the total length of the history.
    holdsBack: null,
  }))
  const prepared = (await ask({ sql: preparedSql })).rows
  const upkeep = (
    await ask({
      sql: `select ${sessionColumns(server)} from ${sessionTables(server)} where p.command = 'Query' and (p.info like 'alter table %' or p.info like 'optimize table %' or p.info like 'analyze table %') limit 5`,
    })
  ).rows
  return { long, prepared, vacuums: upkeep.map((row) => describeSession(toSession(row))) }
}

/** Selects prepared transactions: without a session, they hold locks until somebody ends them. */
const preparedSql = `
  select trx_id as gid, 'a prepared transaction' as owner, timestampdiff(second, trx_started, now()) as open_seconds
  from information_schema.innodb_trx where trx_mysql_thread_id = 0 and trx_state <> 'COMMITTING' order by trx_started limit 10`
