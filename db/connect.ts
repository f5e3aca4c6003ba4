import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { type GiveUpReason, giveUpSilent } from './give-up-silent.ts'
import { SessionRefusedError, sessionOpener } from './open-session.ts'
import type { Database } from './tables.ts'

export type Db = Kysely<Database>
export type Trx = Transaction<Database>

const timestamptz = 1184
const int8 = 20

/**
 * `2026-11-21 01:02:03.45+00` as `2026-11-21T01:02:03.450000Z`: the one spelling of a time in rows,
 * hashes and answers, in any zone of the session. Throws for what is no such time: another
 * `datestyle`, infinity, a year before Christ.
 */
export function rfc3339(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::?\d\d){0,2})$/.exec(text)
  if (!match) {
    throw new Error(
      `PostgreSQL wrote a time as ${JSON.stringify(text)}: times are read in the style ISO alone. Something between here and the database leaves out the settings of a connection, or the time is out of range`,
    )
  }
  const [, day, clock, fraction = '', zone = ''] = match
  const micros = fraction.padEnd(6, '0')
  if (/^[+-]00(?::?00)*$/.test(zone)) return `${day}T${clock}.${micros}Z`
  const [hours = 0, minutes = 0, seconds = 0] = (zone.slice(1).match(/\d\d/g) ?? []).map(Number)
  const offsetMs = (hours * 3600 + minutes * 60 + seconds) * 1000 * (zone.startsWith('-') ? -1 : 1)
  return `${new Date(Date.parse(`${day}T${clock}Z`) - offsetMs).toISOString().slice(0, 19)}.${micros}Z`
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
 * Opens a pool in the services' role, which may append to the log and nothing more. `owner: true`
 * keeps the login's role, for migrations and tests. Connects at first use; a database that is down
 * is a query's error, and so is a pool that gives no connection for `patienceMs` (3.5 s).
 */
export function connect(
  databaseUrl: string,
  options: { max?: number; owner?: boolean; name?: string; patienceMs?: number } = {},
): Db {
  const silent = giveUpSilent(databaseUrl)
  const open = sessionOpener(databaseUrl, options.owner === true)
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    // `pg` waits for it before it hands the connection on, though its types say nothing of that.
    async onConnect(client) {
      silent.watch(client, await open(client))
    },
    max: options.max ?? 10,
    types,
    application_name: options.name ?? 'nightshift',
    // Time for a free or new connection. With the look at a silent statement it stays below an
    // answer's five seconds.
    connectionTimeoutMillis: options.patienceMs ?? 3_500,
    keepAlive: true,
  })
  // The next query replaces an idle connection that breaks; without a listener the process ends.
  pool.on('error', () => {})
  // The same for one that breaks while held, between two statements: the next statement fails.
  pool.on('connect', (client) => client.on('error', () => {}))
  const db: Db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
    log({ level, error }: { level: string; error?: unknown }) {
      if (level === 'error' && diskFaults.has(String((error as { code?: unknown } | undefined)?.code)))
        diskFailedAt.set(db, Date.now())
    },
  })
  addresses.set(db, databaseUrl)
  givenUp.set(db, silent.counts)
  return db
}

/** PostgreSQL's words for a disk that is full (53100) and one that fails (58030). */
const diskFaults = new Set(['53100', '58030'])
const diskFailedAt = new WeakMap<Db, number>()

/** The last time a write of this pool met a full or failing disk; null where none did. */
export function lastDiskFaultMs(db: Db): number | null {
  return diskFailedAt.get(db) ?? null
}

const givenUp = new WeakMap<Db, Readonly<Record<GiveUpReason, number>>>()

/** How many connections of this pool were given up, by reason, since it was opened. */
export function connectionsGivenUp(db: Db): Readonly<Partial<Record<GiveUpReason, number>>> {
  return givenUp.get(db) ?? {}
}

/** A listener needs a connection that no statement of the pool gets. */
const addresses = new WeakMap<Db, string>()

/** Where a thread of this process opens connections to the same database. */
export function databaseAddress(db: Db): string {
  return addresses.get(db) as string
}

/** Does this in the caller's transaction where there is one, else in a new one. */
export async function inTransaction<T>(db: Db | Trx, act: (trx: Trx) => Promise<T>): Promise<T> {
  return db.isTransaction ? await act(db as Trx) : await db.transaction().execute(act)
}

/** A connection to the same database outside of the pool, not open yet; the caller gets errors. */
export function separateClient(db: Db, name: string): pg.Client {
  return new pg.Client({
    connectionString: addresses.get(db),
    application_name: name,
    keepAlive: true,
    query_timeout: 5_000,
  })
}

/**
 * Whether PostgreSQL refused a value (class 22, data exception): a number or time out of range, an
 * impossible text. The edge refuses what it knows of these and names the field; this is for the
 * rest.
 */
export function isDataFlaw(error: unknown): boolean {
  return error instanceof Error && /^22[0-9A-Z]{3}$/.test(String((error as { code?: unknown }).code))
}

/**
 * Whether PostgreSQL cannot store this statement's values: out of range, against a check, too large
 * for an index.
 */
export function isRefusedValue(error: unknown): boolean {
  const code = error instanceof Error ? String((error as { code?: unknown }).code) : ''
  return /^(?:22|54)[0-9A-Z]{3}$/.test(code) || /^23(?!505)[0-9A-Z]{3}$/.test(code)
}

/**
 * Whether the same statement may succeed later: lost connections, restarts, deadlocks, full pools
 * and disks, a database that takes no writes now (25006) or is being restored (3D000), a pooler
 * whose settings somebody has to change.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof SessionRefusedError) return true
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string') {
    if (/^(08|40|53|57|58)/.test(code) || ['55P03', '25006', '3D000'].includes(code)) return true
    if (/^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH)/.test(code)) return true
  }
  return /Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed and is not queryable/.test(
    error.message,
  )
}

/** Asks the database for nothing: throws what keeps it from answering. */
export async function ping(db: Db): Promise<void> {
  await sql`select 1`.execute(db)
}

/** A text as `like` reads it letter by letter: wildcards and escape stand for themselves. */
export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, (character) => `\\${character}`)
}
