import type { Socket } from 'node:net'
import pg from 'pg'
import {
  DatabaseError,
  type DatabaseServer,
  type DatabaseSession,
  findTransportFault,
  guardedSocket,
  lockTimeoutMs,
  maxAnswerBytes,
  requireAllowed,
  type ServerFacts,
  type SqlAnswer,
  type SqlStatement,
  type SqlValue,
  serverHeadStartMs,
} from './server.ts'

/**
 * Connects to PostgreSQL with `pg`. Each statement uses the extended protocol, which allows one at
 * a time.
 */

/** Types whose text is a number: int2, int4, int8, oid, float4, float8, numeric, xid. */
const numeric = new Set([20, 21, 23, 26, 28, 700, 701, 1700])
const boolean = 16

const types = {
  getTypeParser(oid: number) {
    if (oid === boolean) return (text: string) => text === 't'
    if (numeric.has(oid)) return toNumber
    return (text: string) => text
  },
} as unknown as pg.CustomTypesConfig

/**
 * Formats a time column in SQL as RFC 3339; sessions use UTC. `fraction` adds microseconds, for
 * comparisons of write calls.
 */
export const toTimeSql = (column: string, fraction = ''): string =>
  `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS${fraction}"Z"')`

/** Converts a text to a number. Keeps the text above 2^53, where only it is exact. */
function toNumber(text: string): SqlValue {
  const number = Number(text)
  return Number.isFinite(number) && Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : text
}

/** Opens a session within the server's time limit. Throws DatabaseError. */
export async function openPostgres(server: DatabaseServer): Promise<DatabaseSession> {
  requireAllowed(server.host)
  const client = new pg.Client({
    host: server.host,
    port: server.port,
    user: server.login.user,
    password: server.login.password,
    ...(server.database !== null && { database: server.database }),
    ssl: toTls(server),
    stream: guardedSocket,
    types,
    application_name: 'nightshift',
    connectionTimeoutMillis: server.timeoutMs,
    query_timeout: server.timeoutMs,
    keepAlive: true,
  })
  let isOver = false
  // Marks a session that breaks while idle, so that the next query opens another session.
  client.on('error', () => {
    isOver = true
  })
  client.on('end', () => {
    isOver = true
  })
  const end = () => {
    isOver = true
    client.end().catch(() => undefined)
  }
  try {
    await client.connect()
    const facts = await readFacts(client, server)
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    return {
      server: facts,
      read: (statement) => readOnly({ client, server, facts, end }, statement),
      write: async (statement) => {
        const answer = await ask(client, statement).catch((error) => giveUp(error, end))
        return toAnswer(answer, statement, facts)
      },
      isOver: () => isOver,
      hold: (isHeld) => (isHeld ? stream.ref() : stream.unref()),
      end,
    }
  } catch (error) {
    end()
    throw toDatabaseError(error)
  }
}

function toTls({ tls, ca, client, host }: DatabaseServer): pg.ClientConfig['ssl'] {
  if (tls === 'off') return false
  return {
    rejectUnauthorized: tls === 'verified',
    host,
    ...(ca !== null && { ca }),
    ...(client !== null && client),
  } as pg.ClientConfig['ssl']
}

/**
 * Sends the settings of a session in one statement, because a pooler drops settings in the opening
 * packet.
 */
async function readFacts(client: pg.Client, { timeoutMs }: DatabaseServer): Promise<ServerFacts> {
  const settings = {
    statement_timeout: String(Math.max(500, timeoutMs - serverHeadStartMs)),
    lock_timeout: String(lockTimeoutMs),
    idle_in_transaction_session_timeout: '10000',
    timezone: 'UTC',
    datestyle: 'ISO',
    search_path: 'pg_catalog, public',
  }
  const set = Object.keys(settings).map((name, at) => `set_config('${name}', $${at + 1}, false)`)
  // Disables just-in-time compilation, because compiling a query about the catalogue takes longer
  // than running the query. The setting does not exist before version 11.
  const jit = `set_config('jit', 'off', false) from pg_settings where name = 'jit'`
  const sql = `select pg_backend_pid() as pid, current_setting('server_version') as version, current_setting('server_version_num')::int as number, ${set.join(', ')}, (select ${jit}) as jit`
  const { rows } = await ask(client, { sql, values: Object.values(settings) })
  const [row = {}] = rows
  return {
    product: 'PostgreSQL',
    version: String(row.version).split(' ')[0] ?? '',
    major: Math.floor(Number(row.number) / 10_000),
    number: Number(row.number),
    pid: Number(row.pid),
  }
}

type Opened = { client: pg.Client; server: DatabaseServer; facts: ServerFacts; end: () => void }

/**
 * Runs a statement in a read-only transaction. A query for rows uses a cursor, so that the server
 * produces only the rows that are read.
 */
async function readOnly({ client, facts, end }: Opened, statement: SqlStatement): Promise<SqlAnswer> {
  try {
    await ask(client, { sql: 'begin transaction isolation level read committed read only' })
    const answer = await askAtMost(client, statement)
    await ask(client, { sql: 'rollback' })
    return toAnswer(answer, statement, facts)
  } catch (error) {
    const fault = toDatabaseError(error)
    // Ends the session if the server did not respond, because this also ends the statement.
    if (fault.state === null) end()
    else await ask(client, { sql: 'rollback' }).catch(end)
    throw fault
  }
}

async function askAtMost(client: pg.Client, statement: SqlStatement) {
  const { sql, values, maxRows } = statement
  if (maxRows === undefined || !/^\s*(?:select|with|values|table)\b/i.test(sql)) return await ask(client, statement)
  await ask(client, { sql: `declare nightshift_look no scroll cursor for ${sql}`, ...(values && { values }) })
  return await ask(client, { sql: `fetch ${maxRows + 1} from nightshift_look` })
}

type RawAnswer = { fields: { name: string }[]; rows: Record<string, SqlValue>[] }

/** Runs one statement. Cancels a statement whose answer exceeds `maxAnswerBytes`. */
async function ask(client: pg.Client, { sql, values }: SqlStatement): Promise<RawAnswer> {
  const { stream } = (
    client as unknown as { connection: { stream: NodeJS.ReadableStream & { destroy(e: Error): void } } }
  ).connection
  let bytes = 0
  const count = (piece: Uint8Array) => {
    bytes += piece.byteLength
    if (bytes > maxAnswerBytes)
      stream.destroy(new DatabaseError('too_large', `it answered more than ${maxAnswerBytes / 1e6} MB`))
  }
  stream.on('data', count)
  try {
    const query = { text: sql, values: [...(values ?? [])], queryMode: 'extended' } as pg.QueryConfig
    return (await client.query(query)) as unknown as RawAnswer
  } finally {
    stream.removeListener('data', count)
  }
}

function toAnswer({ fields, rows }: RawAnswer, { maxRows }: SqlStatement, server: ServerFacts): SqlAnswer {
  const kept = maxRows === undefined ? rows : rows.slice(0, maxRows)
  return { columns: fields.map(({ name }) => name), rows: kept, isCut: kept.length < rows.length, server }
}

function giveUp(error: unknown, end: () => void): never {
  end()
  throw toDatabaseError(error)
}

/**
 * Classes and codes of SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html),
 * the longest first.
 */
const codes: readonly [state: RegExp, DatabaseError['code']][] = [
  [/^28/, 'refused_login'],
  [/^3D000$/, 'no_database'],
  [/^42501$/, 'not_allowed'],
  [/^57P03$/, 'starting'],
  [/^53300$/, 'full'],
  [/^57014$/, 'timeout'],
  [/^55P03$/, 'locked'],
  [/^(?:57P01|57P02|57P05|25P03|08)/, 'ended'],
]

/** Matches the class of data exceptions, whose messages quote the value. */
const isAboutValue = /^22/

function toDatabaseError(error: unknown): DatabaseError {
  const fault = findTransportFault(error)
  if (fault) return fault
  const { code, message } = error as { code?: string; message: string }
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) {
    const word = codes.find(([state]) => state.test(code))?.[1] ?? 'rejected'
    // Drops the server's error as cause, because a log would print its text, which quotes values.
    return new DatabaseError(word, oneLine(isAboutValue.test(code) ? message.replace(/".*"/s, '"…"') : message), code)
  }
  const cause = { cause: error }
  if (/timeout/i.test(message)) return new DatabaseError('timeout', 'it gave no complete response in time', null, cause)
  if (/password|authentication|SASL|SCRAM/i.test(message))
    return new DatabaseError('refused_login', oneLine(message), null, cause)
  return new DatabaseError('ended', 'the connection ended before its response', null, cause)
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300)
