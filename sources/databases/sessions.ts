import { toTimeSql } from '../../clients/databases/postgres.ts'
import type { SqlValue } from '../../clients/databases/server.ts'
import { hideLiterals } from './statement.ts'

/** Sessions of a database server, in the form that all queries about sessions use. */

export type SqlRow = Record<string, SqlValue>

/** The identity, user, age and activity of a session. The values in its statement are hidden. */
export type ShownSession = {
  pid: number
  /** The beginning of the session, which identifies the session together with the pid. */
  began: string | null
  user: string | null
  application?: string
  from?: string
  database?: string
  state: string
  /** The beginning of the session's transaction. Absent if the session has none. */
  transactionSince?: string
  /** The beginning of the session's present state. */
  stateSince?: string
  statement: string
}

/**
 * Columns of `pg_stat_activity` (https://www.postgresql.org/docs/current/monitoring-stats.html) for
 * a session.
 */
export const sessionColumns = `a.pid, a.usename, a.datname, a.application_name, host(a.client_addr) as client,
  ${toTimeSql('a.backend_start', '.US')} as backend_start,
  ${toTimeSql('a.xact_start')} as xact_start,
  ${toTimeSql('a.state_change')} as state_change,
  a.state, a.wait_event_type, a.wait_event, a.backend_type, left(a.query, 4000) as query`

const text = (value: SqlValue | undefined): string | null =>
  value === null || value === undefined || value === '' ? null : String(value)

export function toSession(row: SqlRow): ShownSession {
  const waits = row.wait_event_type === 'Lock' ? ', waits for a lock' : ''
  const optional = {
    application: text(row.application_name),
    from: text(row.client),
    database: text(row.datname),
    transactionSince: text(row.xact_start),
    stateSince: text(row.state_change),
  }
  return {
    pid: Number(row.pid),
    began: text(row.backend_start),
    user: text(row.usename),
    ...(Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)) as Partial<ShownSession>),
    state: `${text(row.state) ?? text(row.backend_type) ?? 'unknown'}${waits}`,
    statement: hideLiterals(text(row.query) ?? '', 'postgres'),
  }
}

/** Formats `4711 app@shop (billing), idle in transaction since 12:01:03: update orders set …`. */
export const describeSession = ({
  pid,
  user,
  application,
  database,
  state,
  stateSince,
  statement,
}: ShownSession): string =>
  `${pid} ${user ?? '?'}${database ? `@${database}` : ''}${application ? ` (${application})` : ''}, ${state}${stateSince ? ` since ${stateSince.slice(11, 19)}` : ''}: ${statement}`
