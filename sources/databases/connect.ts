import { DatabaseError, type SqlAnswer, type SqlStatement } from '../../clients/databases/server.ts'
import { withSession } from '../../clients/databases/sessions.ts'
import { hideCredentials } from '../../domain/hidden-credentials.ts'
import type { Source } from '../../domain/source.ts'
import { redact } from '../../safety/redact.ts'
import { addCommand, readLogin } from '../credentials.ts'
import { SourceError, type SourceErrorCode } from '../kind.ts'

/**
 * Questions to a database: looking statements, each in a transaction that cannot write, one at a
 * time a server.
 */
export type AskDatabase = (statement: SqlStatement) => Promise<SqlAnswer>

/** Speaks with a server by its reading credential, read at each question and kept here. */
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

/** Programs' names may hold a password. A statement keeps quotes until values are hidden. */
const cleanseRow = (row: SqlAnswer['rows'][number]): SqlAnswer['rows'][number] =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'string' && name !== 'query' ? redact(value) : value,
    ]),
  )

/** The word of a source for each fault of a server, and what helps. */
function toSourceError(source: Source, { code, state }: DatabaseError, message: string): SourceError {
  const { name, timeoutSeconds } = source
  const say = (word: SourceErrorCode, text: string) => new SourceError(word, `${name} ${text}`)
  const said = state === null ? '' : ` (${state})`
  switch (code) {
    case 'unreachable':
      return say('UNREACHABLE', `cannot be reached: ${message.replace(/^it cannot be reached /, '')}`)
    case 'refused_address':
      return say('UNREACHABLE', 'is at an address that is refused by policy')
    case 'untrusted':
      return say('UNTRUSTED_CERTIFICATE', `has a certificate that is not trusted: ${addCommand(source)} --ca FILE`)
    case 'wrong_certificate':
      return say('UNTRUSTED_CERTIFICATE', message.replace(/^it /, ''))
    case 'no_tls':
      return say(
        'UNTRUSTED_CERTIFICATE',
        `speaks no TLS: ${addCommand(source)} --option tls=off sends the password in the clear`,
      )
    case 'refused_login':
      return say('UNAUTHORIZED', `refused the login: ${message}${said}`)
    case 'not_allowed':
      return say(
        'UNAUTHORIZED',
        `allows this login too little: ${message}${said}. nightshift sources rights ${name} prints what it needs`,
      )
    case 'no_database':
      return say('REJECTED', `has no such database: ${message}${said}`)
    case 'starting':
      return say('UNREACHABLE', `starts up, or recovers: ${message}${said}`)
    case 'full':
      return say('BUSY', `has no connection left: ${message}${said}`)
    case 'timeout':
      return say(
        'TIMEOUT',
        `gave no whole answer within ${timeoutSeconds} s: ask for less, or give it longer (--timeout)`,
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
