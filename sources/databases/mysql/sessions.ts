import { beganSql, processlistOf, toTimeSql } from '../../../clients/databases/mysql-views.ts'
import type { ServerFacts, SqlValue } from '../../../clients/databases/server.ts'
import type { ShownSession, SqlRow } from '../sessions.ts'
import { hideLiterals } from '../statement.ts'

/** Columns of a session of MySQL and MariaDB, for every query about sessions. */

export const sessionColumns = (
  server: ServerFacts,
): string => `p.id as pid, p.user, p.host, p.db, p.command, p.state as doing,
  left(p.info, 4000) as query, ${beganSql(server)} as began, ${toTimeSql('timestampadd(second, -p.time, now())')} as state_since,
  t.trx_state, ${toTimeSql('t.trx_started')} as transaction_since, timestampdiff(second, t.trx_started, now()) as open_seconds`

export const sessionTables = (server: ServerFacts): string =>
  `${processlistOf(server)} p left join information_schema.innodb_trx t on t.trx_mysql_thread_id = p.id`

const text = (value: SqlValue | undefined): string | null =>
  value === null || value === undefined || value === '' ? null : String(value)

const working = /^(?:Query|Execute|Prepare|Fetch|Long Data|Table Dump)$/
const waitsForLock = /^Waiting for .*\b(?:lock|flush)\b/i

function stateOf({ command, doing, trx_state, transaction_since }: SqlRow): string {
  const own = String(command)
  const isWaiting = trx_state === 'LOCK WAIT' || waitsForLock.test(text(doing) ?? '')
  const waits = isWaiting ? ', waits for a lock' : ''
  if (own === 'Sleep') return transaction_since === null ? 'idle' : 'idle in transaction'
  return `${working.test(own) ? 'active' : own.toLowerCase()}${waits}`
}

export function toSession(row: SqlRow): ShownSession {
  const optional = {
    from: text(row.host),
    database: text(row.db),
    transactionSince: text(row.transaction_since),
    stateSince: text(row.state_since),
  }
  return {
    pid: Number(row.pid),
    began: text(row.began),
    user: text(row.user),
    ...(Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)) as Partial<ShownSession>),
    state: stateOf(row),
    // Shows no statement for an idle session, whose last statement is not kept.
    statement: hideLiterals(text(row.query) ?? '', 'mysql') || 'no statement now',
  }
}
