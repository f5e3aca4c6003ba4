import { type Connection, createConnection } from 'mysql2/promise'
import {
  connectGuarded,
  DatabaseError,
  type DatabaseServer,
  type DatabaseSession,
  findTransportFault,
  lockTimeoutMs,
  maxAnswerBytes,
  type ServerFacts,
  type SqlAnswer,
  type SqlStatement,
  type SqlValue,
  serverHeadStartMs,
} from './server.ts'

/**
 * Connects to MySQL and MariaDB with `mysql2`, one statement at a time. Values are sent separately
 * in prepared statements, so that no mode of the server reads them as SQL.
 */

type Opened = { connection: Connection; server: DatabaseServer; facts: ServerFacts; end: () => void }

/**
 * Opens a session within the server's time limit. Selects no database, because no statement needs
 * one. Throws DatabaseError.
 */
export async function openMysql(server: DatabaseServer): Promise<DatabaseSession> {
  let connection: Connection
  const socket = connectGuarded(server)
  const deadline = setTimeout(() => socket.destroy(late()), server.timeoutMs)
  try {
    connection = await createConnection({
      host: server.host,
      port: server.port,
      user: server.login.user,
      password: server.login.password,
      ...toTls(server),
      stream: () => socket,
      charset: 'utf8mb4',
      dateStrings: true,
      supportBigNumbers: true,
      connectTimeout: server.timeoutMs,
      // Disables a feature with which a server can request a file from its client.
      flags: ['-LOCAL_FILES'],
    })
  } catch (error) {
    socket.destroy()
    throw toDatabaseError(error)
  } finally {
    clearTimeout(deadline)
  }
  let isOver = false
  connection.on('error', () => {
    isOver = true
  })
  const end = () => {
    isOver = true
    connection.destroy()
  }
  try {
    const facts = await readFacts({ connection, server, end })
    const opened = { connection, server, facts, end }
    return {
      server: facts,
      read: (statement) => readOnly(opened, statement),
      write: async (statement) => toAnswer(await ask(opened, statement), statement, facts),
      isOver: () => isOver,
      hold: (isHeld) => void (isHeld ? socket.ref() : socket.unref()),
      end,
    }
  } catch (error) {
    end()
    throw toDatabaseError(error)
  }
}

const late = (): DatabaseError => new DatabaseError('timeout', 'it gave no complete response in time')

function toTls({ tls, ca, client }: DatabaseServer) {
  if (tls === 'off') return {}
  const isVerified = tls === 'verified'
  return {
    ssl: {
      rejectUnauthorized: isVerified,
      verifyIdentity: isVerified,
      ...(ca !== null && { ca }),
      ...(client !== null && client),
    },
  }
}

/** The oldest supported versions. Older ones lack views, privileges and limits that reads need. */
const oldest = { MySQL: 80_000, MariaDB: 100_500 }

async function readFacts(opened: Asked): Promise<ServerFacts> {
  const { server } = opened
  const { rows } = await ask(opened, { sql: 'select version() as version, connection_id() as pid' })
  const { version = '', pid = 0 } = (rows[0] ?? {}) as { version?: string; pid?: number }
  const product = /mariadb/i.test(version) ? 'MariaDB' : 'MySQL'
  // Removes the prefix of `5.5.5-10.11.6-MariaDB`, which MariaDB reports to old clients.
  const named = /(\d+)\.(\d+)\.(\d+)/.exec(version.replace(/^5\.5\.5-/, ''))
  const [, major = 0, minor = 0, patch = 0] = (named ?? []).map(Number)
  const number = major * 10_000 + minor * 100 + patch
  if (number < oldest[product])
    throw new DatabaseError(
      'too_old',
      `${product} ${version}: MySQL 8.0 and MariaDB 10.5 are the oldest supported versions`,
    )
  const limitMs = Math.max(500, server.timeoutMs - serverHeadStartMs)
  const limit = product === 'MariaDB' ? `max_statement_time = ${limitMs / 1_000}` : `max_execution_time = ${limitMs}`
  const lockSeconds = Math.ceil(lockTimeoutMs / 1_000)
  // Sets the session's time zone, because the views of InnoDB have times in the server's zone.
  await ask(opened, {
    sql: `set session ${limit}, lock_wait_timeout = ${lockSeconds}, innodb_lock_wait_timeout = ${lockSeconds}, time_zone = 'SYSTEM'`,
  })
  return { product, version: named?.[0] ?? version, major, number, pid }
}

/** Runs a statement in a read-only transaction. The server produces only the rows that are read. */
async function readOnly(opened: Opened, statement: SqlStatement): Promise<SqlAnswer> {
  const { facts, end } = opened
  const { maxRows } = statement
  const leave = async () => {
    if (maxRows !== undefined) await ask(opened, { sql: 'set session sql_select_limit = default' })
    await ask(opened, { sql: 'rollback' })
  }
  try {
    await ask(opened, { sql: 'start transaction read only' })
    if (maxRows !== undefined) await ask(opened, { sql: `set session sql_select_limit = ${maxRows + 1}` })
    const answer = await ask(opened, statement)
    await leave()
    return toAnswer(answer, statement, facts)
  } catch (error) {
    // Ends the session if the server did not respond, because this also ends the statement.
    if (!(error instanceof DatabaseError) || error.state === null) end()
    else await leave().catch(end)
    throw error
  }
}

/** The parts of a session that a statement needs. */
type Asked = Pick<Opened, 'connection' | 'server' | 'end'>

type RawAnswer = { columns: string[]; rows: Record<string, unknown>[] }

/**
 * Runs one statement. Cancels a statement whose answer exceeds `maxAnswerBytes`, or that takes
 * longer than the server's time limit. Throws DatabaseError.
 */
async function ask({ connection, server, end }: Asked, { sql, values }: SqlStatement): Promise<RawAnswer> {
  const { stream } = (connection as unknown as { connection: { stream: NodeJS.ReadableStream } }).connection
  let bytes = 0
  let fail: (error: DatabaseError) => void
  const broken = new Promise<never>((_, reject) => {
    fail = (error) => {
      end()
      reject(error)
    }
  })
  const count = (piece: Uint8Array) => {
    bytes += piece.byteLength
    if (bytes > maxAnswerBytes) fail(new DatabaseError('too_large', `it answered more than ${maxAnswerBytes / 1e6} MB`))
  }
  const deadline = setTimeout(() => fail(late()), server.timeoutMs)
  stream.on('data', count)
  try {
    const asked = values ? connection.execute(sql, [...values]) : connection.query(sql)
    return findRows((await Promise.race([asked, broken])) as unknown as [unknown, unknown])
  } catch (error) {
    throw toDatabaseError(error)
  } finally {
    clearTimeout(deadline)
    stream.removeListener('data', count)
  }
}

/**
 * Finds the rows of a result. A block of several statements returns a list, of which the first rows
 * are the result.
 */
function findRows([rows, fields]: [unknown, unknown]): RawAnswer {
  if (!Array.isArray(rows)) return { columns: [], rows: [] }
  if (Array.isArray(rows[0])) return findRows([rows[0], (fields as unknown[])[0]])
  return { columns: ((fields ?? []) as { name: string }[]).map(({ name }) => name), rows }
}

function toAnswer({ columns, rows }: RawAnswer, { maxRows }: SqlStatement, server: ServerFacts): SqlAnswer {
  const kept = maxRows === undefined ? rows : rows.slice(0, maxRows)
  return { columns, rows: kept.map(toPlain), isCut: kept.length < rows.length, server }
}

const toPlain = (row: Record<string, unknown>): Record<string, SqlValue> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toValue(value)]))

function toValue(value: unknown): SqlValue {
  if (value === null || typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string')
    return value
  return Buffer.isBuffer(value) ? value.toString('utf8') : JSON.stringify(value)
}

/**
 * Error numbers of https://mariadb.com/kb/en/mariadb-error-code-reference/ and of MySQL's
 * reference.
 */
const codes: readonly [numbers: readonly number[], DatabaseError['code']][] = [
  [[1045, 1698, 1862, 3118, 4151], 'refused_login'],
  [[1044, 1142, 1143, 1227, 1370, 1419], 'not_allowed'],
  [[1049], 'no_database'],
  [[1040, 1203, 1226], 'full'],
  [[1205, 1213], 'locked'],
  [[1969, 3024], 'timeout'],
  [[1053, 1317, 1927, 2006, 2013], 'ended'],
]

function toDatabaseError(error: unknown): DatabaseError {
  const fault = findTransportFault(error)
  if (fault) return fault
  const { errno, code, message } = error as { errno?: number; code?: string; message: string }
  const cause = { cause: error }
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT') return new DatabaseError('no_tls', 'it does not use TLS', null, cause)
  if (typeof errno === 'number' && errno >= 1_000) {
    const word = codes.find(([numbers]) => numbers.includes(errno))?.[1] ?? 'rejected'
    return new DatabaseError(
      word,
      sayWithoutValue(errno, message.replace(/\s+/g, ' ').trim()).slice(0, 300),
      String(errno),
    )
  }
  return new DatabaseError('ended', 'the connection ended before its response', null, cause)
}

/**
 * Errors that quote values: duplicate keys, values of another type or length, syntax near a text
 * (https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html).
 */
const aboutValues = new Set([1062, 1064, 1264, 1265, 1292, 1366, 1406, 1411, 1525])

const sayWithoutValue = (errno: number, message: string): string =>
  aboutValues.has(errno) ? message.replace(/'.*'/s, "'…'") : message
