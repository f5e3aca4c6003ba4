import { connect, isIP, Socket } from 'node:net'
import type { DatabaseProduct } from '../../domain/database-rights.ts'
import { type AddressPolicy, allows, guardedLookup } from '../address.ts'
import { findCertificateFault } from '../certificate-fault.ts'

/** Connects to database servers of others: their addresses, responses and errors. */

/** The protocol of the server. MariaDB uses MySQL's. */
type Dialect = 'postgres' | 'mysql'

export type DatabaseServer = {
  dialect: Dialect
  host: string
  port: number
  /** The name of the database. Null for the server's default for the login. */
  database: string | null
  login: { user: string; password: string }
  /**
   * `verified`: the server's certificate was signed by a trusted authority for its name.
   * `unverified`: encrypted, without proof of the server's identity.
   */
  tls: 'off' | 'unverified' | 'verified'
  /** PEM of the trusted authorities. Null for the system's authorities. */
  ca: string | null
  client: { cert: string; key: string } | null
  /**
   * Milliseconds for opening a session, and from a statement to its last row. The server's own
   * limit for a statement is shorter.
   */
  timeoutMs: number
}

/** The server's information about itself when a session opens. */
export type ServerFacts = {
  product: DatabaseProduct
  /** The version as the server writes it: `15.18`. */
  version: string
  major: number
  /** The version as a number for comparisons: 15.18 is 150018, 10.11.6 is 101106. */
  number: number
  /** The process id of this session on the server. */
  pid: number
}

export type SqlValue = string | number | boolean | null

/** One statement. Above `maxRows` rows the result is cut, and `isCut` is true. */
export type SqlStatement = { sql: string; values?: readonly SqlValue[]; maxRows?: number }

/**
 * Rows by column names. Numbers and booleans keep their type; any other value is text as the server
 * writes it.
 */
export type SqlAnswer = { columns: string[]; rows: Record<string, SqlValue>[]; isCut: boolean; server: ServerFacts }

/** A session with one server. Statements run one after the other. */
export type DatabaseSession = {
  server: ServerFacts
  /** Runs a statement in a read-only transaction, with a read's limits. Throws DatabaseError. */
  read(statement: SqlStatement): Promise<SqlAnswer>
  /** Runs a statement outside of a transaction, with the login's rights. Throws DatabaseError. */
  write(statement: SqlStatement): Promise<SqlAnswer>
  /** True if the connection broke, or was given up. The next statement needs a new session. */
  isOver(): boolean
  /** Sets whether the session keeps the process alive. */
  hold(isHeld: boolean): void
  end(): void
}

/** The reason why a database gave no result. */
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
  /** The server's error code: PostgreSQL's SQLSTATE, MySQL's number. Null without a code. */
  readonly state: string | null
  constructor(code: DatabaseErrorCode, message: string, state: string | null = null, options: ErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.state = state
  }
}

/** The most bytes that a server may send for one statement. */
export const maxAnswerBytes = 4_000_000
/** Milliseconds by which the server ends a statement before its client gives up. */
export const serverHeadStartMs = 500
/** The most milliseconds that a read waits for a lock. */
export const lockTimeoutMs = 1_000

const policy: AddressPolicy = 'private'

const refuse = (host: string) =>
  new DatabaseError('refused_address', `${host} has an address to which Nightshift may not connect`)

/**
 * Makes a socket for `pg` that connects only to allowed addresses, whatever its name resolves to.
 * The caller must check a host that is an IP address.
 */
export function guardedSocket(): Socket {
  const socket = new Socket()
  const open = socket.connect.bind(socket)
  const guarded = (port: number, host: string): Socket => open({ port, host, lookup: guardedLookup(policy, refuse) })
  socket.connect = guarded as Socket['connect']
  return socket
}

/**
 * Makes a connecting socket with an address check, for clients that need one. Throws DatabaseError.
 */
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

/**
 * Converts errors of network and TLS, which are alike for all kinds of servers. Null for errors of
 * the server itself.
 */
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
    return new DatabaseError('no_tls', 'it does not use TLS', null, options)
  return null
}
