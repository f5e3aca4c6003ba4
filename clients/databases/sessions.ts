import { openMysql } from './mysql.ts'
import { openPostgres } from './postgres.ts'
import { DatabaseError, type DatabaseServer, type DatabaseSession } from './server.ts'

/** Keeps sessions between queries: one per login and server, with one statement at a time. */

type Kept = {
  session: DatabaseSession | null
  turn: Promise<unknown>
  waiting: number
  idle: NodeJS.Timeout | null
  /** Names of the sources that used this session. */
  of: Set<string>
}

const kept = new Map<string, Kept>()
/**
 * Milliseconds until an idle session ends, longer than the time between the inventory's rounds. An
 * open session can still read a server that has no free connections.
 */
const idleMs = 330_000
/** The most queries that wait for one server. Any further query is refused. */
const maxWaiting = 6

/** Opens a session by the server's protocol. Throws DatabaseError. */
export const openSession = (server: DatabaseServer): Promise<DatabaseSession> =>
  server.dialect === 'postgres' ? openPostgres(server) : openMysql(server)

/**
 * Gives the server's session to one source during `work`. Opens a new session for a broken one, and
 * repeats no statement. An idle session does not keep the process alive. Throws DatabaseError.
 */
export async function withSession<T>(
  { name, server }: { name: string; server: DatabaseServer },
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const key = JSON.stringify(server)
  const entry = kept.get(key) ?? { session: null, turn: Promise.resolve(), waiting: 0, idle: null, of: new Set() }
  kept.set(key, entry)
  // Ends the session that the source used before its login or address changed.
  if (!entry.of.has(name)) endSessionsOf(name)
  entry.of.add(name)
  if (entry.waiting >= maxWaiting)
    throw new DatabaseError('full', `${maxWaiting} queries already wait for this server: ask again later`)
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
 * Ends the session of a changed or removed source, unless another source uses the session. A
 * running query is completed first.
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
