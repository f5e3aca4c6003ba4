import { DatabaseError, type DatabaseServer, type DatabaseSession } from '../../clients/databases/server.ts'
import { openSession } from '../../clients/databases/sessions.ts'
import { sourceByName } from '../../db/inventory/sources.ts'
import { isDatabaseKind, listRights, productsOf } from '../../domain/database-rights.ts'
import type { Source } from '../../domain/source.ts'
import { redact } from '../../safety/redact.ts'
import { readLogin } from '../../sources/credentials.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'

/**
 * Sessions with a database server by its credential for writes. A session is opened for one read or
 * write, and then ended.
 */

export type DatabaseDeps = Pick<EffectDeps, 'db' | 'locks'> & { sources: { directory: string } }

/**
 * Returns the source of a server that may be written to. Refuses a server that is not a source, or
 * a source without a credential for writes.
 */
export async function requireWritable({ db }: Pick<DatabaseDeps, 'db'>, name: string): Promise<Source> {
  const source = await sourceByName(db, name)
  if (!source || !isDatabaseKind(source.kind)) throw refuseMissing(`database server ${name} among the sources`)
  if (source.writeCredential !== null) return source
  const detail = `${name} has no credential for writes. An administrator creates a login with the output of "nightshift sources rights ${name} --write", and sets it with --write-credential.`
  throw new EffectRefused('conflict', 'NO_WRITE_CREDENTIAL', detail)
}

/**
 * Does the work in a session of the login for writes, and ends the session. Converts refusals of
 * the server to EffectRefused.
 */
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

/** Returns the user with which a source reads; null if its credential cannot be read now. */
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
  // Explains the rights if a function or schema is missing, because then the statements that grant
  // them were not run.
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
      `${name} does not allow this to its login: ${said}. The login needs: ${rights}${made}`,
    )
  }
  if (code === 'refused_login')
    return new EffectRefused('unavailable', 'UNAUTHORIZED', `${name} refused the login for writes: ${said}`)
  if (code === 'rejected') return new EffectRefused('conflict', 'SERVER_REFUSED', `${name} refused it: ${said}`)
  // Distinguishes a lost session from a session that was never open, and so sent nothing.
  return new EffectRefused(
    'unavailable',
    session ? 'DATABASE_LOST' : 'DATABASE_AWAY',
    `${name} did not answer: ${said}`,
  )
}
