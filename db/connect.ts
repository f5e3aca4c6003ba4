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
 * Converts `2026-11-21 01:02:03.45+00` to `2026-11-21T01:02:03.450000Z`, the only format of times
 * in rows, hashes and responses, whatever time zone the session has. Throws for another
 * `datestyle`, for infinity, and for a year before Christ.
 */
export function rfc3339(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::?\d\d){0,2})$/.exec(text)
  if (!match) {
    throw new Error(
      `PostgreSQL wrote a time as ${JSON.stringify(text)}, and Nightshift only reads ISO style. A pooler in front of the database drops the settings of a connection, or the time is out of range`,
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
    // Converts an int8 to a number: identity values and byte counts are far below 2^53.
    if (oid === int8 && format !== 'binary') return Number
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

/**
 * Opens a pool of connections in the role of the services, which can append to the log but not
 * change the log. `owner: true` keeps the role of the login, for migrations and tests. Connects at
 * the first use. If the database is down, or if the pool gives no connection for `patienceMs` (3.5
 * s), the query fails.
 */
export function connect(
  databaseUrl: string,
  options: { max?: number; owner?: boolean; name?: string; patienceMs?: number } = {},
): Db {
  const silent = giveUpSilent(databaseUrl)
  const open = sessionOpener(databaseUrl, options.owner === true)
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    // `pg` awaits this function before it returns the connection, although its types do not show
    // this.
    async onConnect(client) {
      silent.watch(client, await open(client))
    },
    max: options.max ?? 10,
    types,
    application_name: options.name ?? 'nightshift',
    // Milliseconds to wait for a connection. Together with the check of a silent statement, the
    // wait stays below the five seconds that a response may take.
    connectionTimeoutMillis: options.patienceMs ?? 3_500,
    keepAlive: true,
  })
  // Ignores errors of an idle connection, because the next query opens another connection. An error
  // without a listener would end the process.
  pool.on('error', () => {})
  // Ignores the error of a connection that breaks between two statements of a transaction or of a
  // lock holder. The next statement then fails.
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

/** PostgreSQL's codes for a full disk (53100) and for a failing disk (58030). */
const diskFaults = new Set(['53100', '58030'])
const diskFailedAt = new WeakMap<Db, number>()

/**
 * Returns when a write of this pool last failed because of a full or failing disk; null if no write
 * of the pool failed so.
 */
export function lastDiskFaultMs(db: Db): number | null {
  return diskFailedAt.get(db) ?? null
}

const givenUp = new WeakMap<Db, Readonly<Record<GiveUpReason, number>>>()

/** Counts the connections of this pool that were given up since the pool was opened, by reason. */
export function connectionsGivenUp(db: Db): Readonly<Partial<Record<GiveUpReason, number>>> {
  return givenUp.get(db) ?? {}
}

/** Addresses of databases by pool, because a listener needs a connection outside the pool. */
const addresses = new WeakMap<Db, string>()

/** Returns the address at which a thread of this process can connect to the pool's database. */
export function databaseAddress(db: Db): string {
  return addresses.get(db) as string
}

/** Runs `act` in the caller's transaction if there is one, otherwise in a new transaction. */
export async function inTransaction<T>(db: Db | Trx, act: (trx: Trx) => Promise<T>): Promise<T> {
  return db.isTransaction ? await act(db as Trx) : await db.transaction().execute(act)
}

/** Creates a connection outside the pool and does not open it. The caller handles its errors. */
export function separateClient(db: Db, name: string): pg.Client {
  return new pg.Client({
    connectionString: addresses.get(db),
    application_name: name,
    keepAlive: true,
    query_timeout: 5_000,
  })
}

/**
 * Whether PostgreSQL refused a value (class 22, data exception), such as a number or time out of
 * range, or an impossible text. The API refuses most impossible values earlier and names the field.
 * This function covers the remaining values.
 */
export function isDataFlaw(error: unknown): boolean {
  return error instanceof Error && /^22[0-9A-Z]{3}$/.test(String((error as { code?: unknown }).code))
}

/**
 * Whether PostgreSQL cannot store the values of a statement, because they are out of range, violate
 * a check, or are too large for an index.
 */
export function isRefusedValue(error: unknown): boolean {
  const code = error instanceof Error ? String((error as { code?: unknown }).code) : ''
  return /^(?:22|54)[0-9A-Z]{3}$/.test(code) || /^23(?!505)[0-9A-Z]{3}$/.test(code)
}

/**
 * Whether a failed statement may succeed later: after a lost connection, a restart, a deadlock, a
 * full pool or disk, while the database is read-only (25006) or being restored (3D000), or once the
 * settings of a pooler are changed.
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

/** Throws if the database does not respond. Reads no data. */
export async function ping(db: Db): Promise<void> {
  await sql`select 1`.execute(db)
}

/** Escapes a text for `like`, so that wildcards and escapes have no special meaning. */
export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, (character) => `\\${character}`)
}
