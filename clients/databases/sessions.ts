import { openMysql } from './mysql.ts'
import { openPostgres } from './postgres.ts'
import { DatabaseError, type DatabaseServer, type DatabaseSession } from './server.ts'

/** Sessions that are kept between questions: one a login and server, one statement at a time. */

type Kept = { session: DatabaseSession | null; turn: Promise<unknown>; waiting: number; idle: NodeJS.Timeout | null }

const kept = new Map<string, Kept>()
/** Longer than the rounds of the inventory: who is connected already still sees a server that has no connection left. */
const idleMs = 330_000
/** Questions to one server at once; one more is refused. */
const maxWaiting = 6

/** Opens a session with whatever the server speaks. Throws DatabaseError. */
export const openSession = (server: DatabaseServer): Promise<DatabaseSession> =>
  server.dialect === 'postgres' ? openPostgres(server) : openMysql(server)

/**
 * Lends the one session with this server, alone for as long as `work` takes; a session that broke meanwhile is opened again, and nothing is asked twice.
 * Throws DatabaseError.
 */
export async function withSession<T>(
  server: DatabaseServer,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const key = JSON.stringify(server)
  const entry = kept.get(key) ?? { session: null, turn: Promise.resolve(), waiting: 0, idle: null }
  kept.set(key, entry)
  if (entry.waiting >= maxWaiting)
    throw new DatabaseError('full', `${maxWaiting} questions wait for it already: ask again`)
  if (entry.idle) clearTimeout(entry.idle)
  entry.waiting += 1
  const turn = entry.turn
    .catch(() => undefined)
    .then(async () => {
      if (!entry.session || entry.session.isOver()) entry.session = await openSession(server)
      return await work(entry.session)
    })
  entry.turn = turn
  try {
    return await turn
  } finally {
    entry.waiting -= 1
    if (entry.waiting === 0) entry.idle = setTimeout(() => forget(key, entry), idleMs).unref()
  }
}

function forget(key: string, entry: Kept): void {
  if (kept.get(key) === entry) kept.delete(key)
  entry.session?.end()
}
