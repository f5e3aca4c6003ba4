import { DatabaseError, type DatabaseServer, type DatabaseSession } from '../../clients/databases/server.ts'
import { openSession } from '../../clients/databases/sessions.ts'
import { sourceByName } from '../../db/inventory/sources.ts'
import { isDatabaseKind, listRights, productsOf } from '../../domain/database-rights.ts'
import type { Source } from '../../domain/source.ts'
import { redact } from '../../safety/redact.ts'
import { readLogin } from '../../sources/credentials.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'

/** Sessions with a server by its writes' credential: opened for one look or write, and ended. */

export type DatabaseDeps = Pick<EffectDeps, 'db' | 'locks'> & { sources: { directory: string } }

/**
 * Finds the source of a writable server. Refuses a server without a source or without the second
 * credential.
 */
export async function requireWritable({ db }: Pick<DatabaseDeps, 'db'>, name: string): Promise<Source> {
  const source = await sourceByName(db, name)
  if (!source || !isDatabaseKind(source.kind)) throw refuseMissing(`database server ${name} among the sources`)
  if (source.writeCredential !== null) return source
  const detail = `${name} is read alone: no credential for writes is set. An administrator makes a login by "nightshift sources rights ${name} --write" and gives it with --write-credential.`
  throw new EffectRefused('conflict', 'NO_WRITE_CREDENTIAL', detail)
}

/** Works in a session of the writing login, and ends it. A server's refusal is one in words. */
export async function withWriter<T>(
  deps: DatabaseDeps,
  source: Source,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  let session: DatabaseSession | null = null
  try {
    session = await openSession(toServer(deps, source))
    return await work(session)
  } catch (error) {
    throw error instanceof DatabaseError ? toRefusal(source, error, session) : error
  } finally {
    session?.end()
  }
}

/** The user by whom a source reads; null where its credential cannot be read now. */
export function findReader({ sources }: DatabaseDeps, source: Source): string | null {
  try {
    return readLogin(source, sources.directory).login.user
  } catch {
    return null
  }
}

function toServer({ sources }: DatabaseDeps, source: Source): DatabaseServer {
  try {
    return readLogin({ ...source, credential: source.writeCredential }, sources.directory)
  } catch (error) {
    throw new EffectRefused('unavailable', 'NO_CREDENTIAL', (error as Error).message)
  }
}

const isLacking = /^(?:3F000|42883)$/

function toRefusal(
  { name, kind }: Source,
  { code, message, state }: DatabaseError,
  session: DatabaseSession | null,
): EffectRefused {
  const said = `${redact(message)}${state === null ? '' : ` (${state})`}`
  // A function or its schema that is not there was not made by the statements of the rights.
  if (code === 'not_allowed' || (state !== null && isLacking.test(state))) {
    const products = session ? [session.server.product] : isDatabaseKind(kind) ? productsOf(kind) : []
    const rights = products
      .flatMap((product) => listRights(product, 'write'))
      .filter((each) => each.startsWith('GRANT'))
      .join('; ')
    const made =
      code === 'not_allowed' ? '' : `, and the function that "nightshift sources rights ${name} --write" prints`
    return new EffectRefused(
      'conflict',
      'RIGHT_MISSING',
      `${name} does not let its login do that: ${said}. It needs: ${rights}${made}`,
    )
  }
  if (code === 'refused_login')
    return new EffectRefused('unavailable', 'UNAUTHORIZED', `${name} refused the login of its writes: ${said}`)
  if (code === 'rejected') return new EffectRefused('conflict', 'SERVER_REFUSED', `${name} refused it: ${said}`)
  // Before it was open nothing was sent.
  return new EffectRefused(
    'unavailable',
    session ? 'DATABASE_LOST' : 'DATABASE_AWAY',
    `${name} gave no answer: ${said}`,
  )
}
