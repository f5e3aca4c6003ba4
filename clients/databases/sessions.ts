import { openMysql } from './mysql.ts'
import { openPostgres } from './postgres.ts'
import { DatabaseError, type DatabaseServer, type DatabaseSession } from './server.ts'

/** Sessions that are kept between questions: one a login and server, one statement at a time. */

type Kept = {
  session: DatabaseSession | null
  turn: Promise<unknown>
  waiting: number
  idle: NodeJS.Timeout | null
  /** Names of the sources that asked by it. */
  of: Set<string>
}

const kept = new Map<string, Kept>()
/**
 * Longer than the inventory's rounds: one already connected still sees a server without free
 * connections.
 */
const idleMs = 330_000
/** Questions to one server at once; one more is refused. */
const maxWaiting = 6

/** Opens a session with whatever the server speaks. Throws DatabaseError. */
export const openSession = (server: DatabaseServer): Promise<DatabaseSession> =>
  server.dialect === 'postgres' ? openPostgres(server) : openMysql(server)

/**
 * Lends the server's one session to that source, alone while `work` takes; a broken one is opened
 * again, and nothing is asked twice. Between questions it holds no process. Throws DatabaseError.
 */
export async function withSession<T>(
  { name, server }: { name: string; server: DatabaseServer },
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const key = JSON.stringify(server)
  const entry = kept.get(key) ?? { session: null, turn: Promise.resolve(), waiting: 0, idle: null, of: new Set() }
  kept.set(key, entry)
  // What this source asked by before it got another login or address.
  if (!entry.of.has(name)) endSessionsOf(name)
  entry.of.add(name)
  if (entry.waiting >= maxWaiting)
    throw new DatabaseError('full', `${maxWaiting} questions wait for it already: ask again`)
  if (entry.idle) clearTimeout(entry.idle)
  entry.waiting += 1
  const turn = entry.turn
    .catch(() => undefined)
    .then(async () => {
      if (!entry.session || entry.session.isOver()) entry.session = await openSession(server)
      entry.session.hold(true)
      return await work(entry.session)
    })
  entry.turn = turn
  try {
    return await turn
  } finally {
    entry.waiting -= 1
    if (entry.waiting === 0) {
      if (entry.of.size === 0) forget(key, entry)
      else entry.idle = setTimeout(() => forget(key, entry), idleMs).unref()
      entry.session?.hold(false)
    }
  }
}

/**
 * Ends the session of a changed or removed source, unless another asks by it; a question under way
 * is answered first.
 */
export function endSessionsOf(name: string): void {
  for (const [key, entry] of kept) {
    if (entry.of.delete(name) && entry.of.size === 0 && entry.waiting === 0) forget(key, entry)
  }
}

function forget(key: string, entry: Kept): void {
  if (kept.get(key) === entry) kept.delete(key)
  if (entry.idle) clearTimeout(entry.idle)
  entry.session?.end()
}
