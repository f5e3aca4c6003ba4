import { DatabaseError, type SqlAnswer, type SqlStatement } from '../../clients/databases/server.ts'
import { withSession } from '../../clients/databases/sessions.ts'
import { hideCredentials } from '../../domain/hidden-credentials.ts'
import type { Source } from '../../domain/source.ts'
import { redact } from '../../safety/redact.ts'
import { addCommand, readLogin } from '../credentials.ts'
import { SourceError, type SourceErrorCode } from '../kind.ts'

/**
 * Queries a database with reading statements: each in a transaction that cannot write, and one at a
 * time per server.
 */
export type AskDatabase = (statement: SqlStatement) => Promise<SqlAnswer>

/**
 * Connects to a server with the source's credential for reading. The credential is read for each
 * statement and kept in this process.
 */
export const connectDatabase =
  (source: Source, directory: string): AskDatabase =>
  async (statement) => {
    const server = readLogin(source, directory)
    const hide = hideCredentials([server.login.password])
    try {
      const answer = hide.value(await withSession({ name: source.name, server }, (session) => session.read(statement)))
      return { ...answer, rows: answer.rows.map(cleanseRow) }
    } catch (error) {
      throw error instanceof DatabaseError ? toSourceError(source, error, redact(hide.text(error.message))) : error
    }
  }

/**
 * Cleanses the texts of a row, because even the name of a program may contain a password. Leaves
 * the text of a statement as it is: the values in it are hidden later, by its quotes.
 */
const cleanseRow = (row: SqlAnswer['rows'][number]): SqlAnswer['rows'][number] =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'string' && name !== 'query' ? redact(value) : value,
    ]),
  )

/** Converts a server's error to a SourceError, with the remedy. */
function toSourceError(source: Source, { code, state }: DatabaseError, message: string): SourceError {
  const { name, timeoutSeconds } = source
  const say = (word: SourceErrorCode, text: string) => new SourceError(word, `${name} ${text}`)
  const said = state === null ? '' : ` (${state})`
  switch (code) {
    case 'unreachable':
      return say('UNREACHABLE', `cannot be reached: ${message.replace(/^it cannot be reached /, '')}`)
    case 'refused_address':
      return say('UNREACHABLE', 'has an address to which Nightshift may not connect')
    case 'untrusted':
      return say('UNTRUSTED_CERTIFICATE', `has a certificate that is not trusted: ${addCommand(source)} --ca FILE`)
    case 'wrong_certificate':
      return say('UNTRUSTED_CERTIFICATE', message.replace(/^it /, ''))
    case 'no_tls':
      return say(
        'UNTRUSTED_CERTIFICATE',
        `does not offer TLS: ${addCommand(source)} --option tls=off sends the password unencrypted`,
      )
    case 'refused_login':
      return say('UNAUTHORIZED', `refused the login: ${message}${said}`)
    case 'not_allowed':
      return say(
        'UNAUTHORIZED',
        `gives this login too few rights: ${message}${said}. nightshift sources rights ${name} prints what it needs`,
      )
    case 'no_database':
      return say('REJECTED', `has no such database: ${message}${said}`)
    case 'starting':
      return say('UNREACHABLE', `is starting or recovering: ${message}${said}`)
    case 'full':
      return say('BUSY', `has no free connection: ${message}${said}`)
    case 'timeout':
      return say(
        'TIMEOUT',
        `sent no complete response within ${timeoutSeconds} s: ask for less, or allow more time (--timeout)`,
      )
    case 'locked':
      return say('REJECTED', `waits for a lock of another session: ${message}${said}`)
    case 'ended':
      return say('UNREACHABLE', `ended the session: ${message}${said}`)
    case 'too_large':
      return say('TOO_LARGE', `${message.replace(/^it /, '')}: ask for fewer columns or rows`)
    case 'too_old':
      return say('REJECTED', `is ${message}`)
    case 'rejected':
      return say('REJECTED', `refused the statement: ${message}${said}`)
  }
}
