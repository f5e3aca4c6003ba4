import { CamelCasePlugin, Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import type { Database } from './tables.ts'

export type Db = Kysely<Database>
export type Trx = Transaction<Database>

const timestamptz = 1184
const int8 = 20

/** `2026-11-21 01:02:03.45+00` as `2026-11-21T01:02:03.450000Z`: the one spelling of a time in rows, hashes and answers. */
function rfc3339(text: string): string {
  const match = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00(?::?00)?$/.exec(text)
  if (!match) return text
  return `${match[1]}T${match[2]}.${(match[3] ?? '').padEnd(6, '0')}Z`
}

const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === timestamptz && format !== 'binary') return rfc3339
    // Identity values and byte counts stay far below 2^53.
    if (oid === int8 && format !== 'binary') return Number
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

/**
 * Opens a pool as the services' role, which may append to the log and nothing more. `owner: true` keeps the login's own
 * role, for migrations and tests. Connections are made on first use; a database that is down is an error of the query.
 */
export function connect(databaseUrl: string, options: { max?: number; owner?: boolean; name?: string } = {}): Db {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: options.max ?? 10,
    types,
    application_name: options.name ?? 'nightshift',
    connectionTimeoutMillis: 5_000,
    options: options.owner ? '-c timezone=UTC' : '-c timezone=UTC -c role=nightshift_app',
    // A statement of ours takes milliseconds: one that hangs holds a lock that investigations wait for.
    statement_timeout: 20_000,
    idle_in_transaction_session_timeout: 20_000,
    keepAlive: true,
  })
  // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {})
  // The same for one that breaks while it is held, between two statements of a transaction: the next statement fails.
  pool.on('connect', (client) => client.on('error', () => {}))
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
}

/**
 * Did PostgreSQL refuse a value (class 22, data exception): a number or a time out of range, text that it cannot hold? The edge
 * refuses what it knows of these and names the field; this is for what it does not know.
 */
export function isDataFlaw(error: unknown): boolean {
  return error instanceof Error && /^22[0-9A-Z]{3}$/.test(String((error as { code?: unknown }).code))
}

/** Would the same statement, later, have a chance? True for lost connections, restarts, dead-locks and full pools. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string') {
    if (/^(08|40|53|57)/.test(code) || code === '55P03') return true
    if (/^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH)/.test(code)) return true
  }
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error/.test(
    error.message,
  )
}
