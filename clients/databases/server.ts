import { connect, isIP, Socket } from 'node:net'
import type { DatabaseProduct } from '../../domain/database-rights.ts'
import { type AddressPolicy, allows, guardedLookup } from '../address.ts'
import { findCertificateFault } from '../certificate-fault.ts'

/**
 * Other people's database servers, for a client: how each is reached, what it answers, and why it
 * does not.
 */

/** What a server speaks: MariaDB speaks MySQL's. */
type Dialect = 'postgres' | 'mysql'

export type DatabaseServer = {
  dialect: Dialect
  host: string
  port: number
  /** Null: the one that the server gives a login by itself. */
  database: string | null
  login: { user: string; password: string }
  /**
   * `verified`: by authorities and name. `unverified`: encrypted, with anybody at the other end.
   */
  tls: 'off' | 'unverified' | 'verified'
  /** PEM of the authorities that are believed, instead of those of the system. */
  ca: string | null
  client: { cert: string; key: string } | null
  /** From the question to the last row, and for opening. At the server a statement has less. */
  timeoutMs: number
}

/** What a server says of itself when a session is opened. */
export type ServerFacts = {
  product: DatabaseProduct
  /** As the server writes it: `15.18`. */
  version: string
  major: number
  /** As one number that grows: 15.18 is 150018, 10.11.6 is 101106. */
  number: number
  /** The process id of this session on the server. */
  pid: number
}

export type SqlValue = string | number | boolean | null

/** One statement. `maxRows`: more are cut, and `isCut` says so. */
export type SqlStatement = { sql: string; values?: readonly SqlValue[]; maxRows?: number }

/** Rows by column names: numbers and booleans as such, all else as the server writes it. */
export type SqlAnswer = { columns: string[]; rows: Record<string, SqlValue>[]; isCut: boolean; server: ServerFacts }

/** A session with one server. Statements run one after the other. */
export type DatabaseSession = {
  server: ServerFacts
  /** In a transaction that cannot write, within the limits of a look. Throws DatabaseError. */
  read(statement: SqlStatement): Promise<SqlAnswer>
  /** Outside of a transaction, with the rights of the login. Throws DatabaseError. */
  write(statement: SqlStatement): Promise<SqlAnswer>
  /** The connection broke, or was given up: the next statement needs another one. */
  isOver(): boolean
  /** Whether it keeps the process from its end. */
  hold(isHeld: boolean): void
  end(): void
}

/** Why a server gave no answer, in a closed word. */
type DatabaseErrorCode =
  | 'unreachable'
  | 'refused_address'
  | 'untrusted'
  | 'wrong_certificate'
  | 'no_tls'
  | 'refused_login'
  | 'not_allowed'
  | 'no_database'
  | 'starting'
  | 'full'
  | 'timeout'
  | 'locked'
  | 'ended'
  | 'too_large'
  | 'too_old'
  | 'rejected'

export class DatabaseError extends Error {
  override name = 'DatabaseError' as const
  readonly code: DatabaseErrorCode
  /** The server's code: PostgreSQL's SQLSTATE, MySQL's number. Null: it said nothing. */
  readonly state: string | null
  constructor(code: DatabaseErrorCode, message: string, state: string | null = null, options: ErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.state = state
  }
}

/** Most bytes that a server may send for one statement. */
export const maxAnswerBytes = 4_000_000
/** A statement ends at the server before its client gives it up. */
export const serverHeadStartMs = 500
/** A look waits for no lock of the site. */
export const lockTimeoutMs = 1_000

const policy: AddressPolicy = 'private'

const refuse = (host: string) =>
  new DatabaseError('refused_address', `${host} is at an address that is refused by policy`)

/**
 * A socket that reaches only what the policy allows, whatever its name leads to; addresses are
 * checked before. `pg` connects it.
 */
export function guardedSocket(): Socket {
  const socket = new Socket()
  const open = socket.connect.bind(socket)
  const guarded = (port: number, host: string): Socket => open({ port, host, lookup: guardedLookup(policy, refuse) })
  socket.connect = guarded as Socket['connect']
  return socket
}

/** The same for a client that takes a socket which connects already. Throws DatabaseError. */
export function connectGuarded({ host, port }: Pick<DatabaseServer, 'host' | 'port'>): Socket {
  requireAllowed(host)
  return connect({ port, host, lookup: guardedLookup(policy, refuse) })
}

/** Throws DatabaseError for an address that the policy refuses. */
export function requireAllowed(host: string): void {
  if (isIP(host) !== 0 && !allows(policy, host)) throw refuse(host)
}

const unreachable = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ECONNRESET|EPIPE)$/
const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME|UNABLE_TO_GET_ISSUER/

/** Words of network and TLS, alike for every server; null where the server speaks. */
export function findTransportFault(error: unknown): DatabaseError | null {
  if (error instanceof DatabaseError) return error
  const { code = '', message = '' } = error as { code?: unknown; message?: string }
  const options = { cause: error }
  const fault = findCertificateFault(error)
  if (fault !== null) return new DatabaseError('wrong_certificate', `it ${fault}`, null, options)
  if (certificate.test(String(code)))
    return new DatabaseError('untrusted', `its certificate is not trusted (${code})`, null, options)
  if (unreachable.test(String(code)))
    return new DatabaseError('unreachable', `it cannot be reached (${code})`, null, options)
  if (/does not support (?:SSL|secure)/i.test(message))
    return new DatabaseError('no_tls', 'it speaks no TLS', null, options)
  return null
}
