import { sql } from 'kysely'
import { type LiveAnswer, liveAnswer } from '../domain/chat.ts'
import { type Db, separateClient } from './connect.ts'

/** What models write just now, from the worker that hears it to the API processes that show it. PostgreSQL passes it on and keeps nothing. */

const channel = 'nightshift_live_answers'
/** PostgreSQL passes on 8,000 bytes. */
const mostBytes = 7_500
const reopenMs = 1_000

/** Tells all who listen. What would be too long to pass on goes without its text. */
export async function tellLive(db: Db, live: LiveAnswer): Promise<void> {
  const whole = JSON.stringify(live)
  const payload = Buffer.byteLength(whole) > mostBytes ? JSON.stringify({ ...live, tail: '' }) : whole
  await sql`select pg_notify(${channel}, ${payload})`.execute(db)
}

/** Calls `hear` for every word until the signal ends it, on a connection that is opened again when it is lost. */
export async function listenLive(db: Db, hear: (live: LiveAnswer) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const lost = Promise.withResolvers<void>()
    const client = separateClient(db, 'nightshift-live')
    const end = () => lost.resolve()
    client.on('error', end).on('end', end)
    client.on('notification', ({ payload }) => {
      const live = read(payload)
      if (live) hear(live)
    })
    signal.addEventListener('abort', end, { once: true })
    try {
      await client.connect()
      await client.query(`listen ${channel}`)
      await lost.promise
    } catch {
      // The database is away: it is tried again.
    }
    signal.removeEventListener('abort', end)
    await client.end().catch(() => {})
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, reopenMs))
  }
}

/** Anybody who may connect to the database can tell: what has not the form is passed over. */
function read(payload: string | undefined): LiveAnswer | null {
  try {
    return liveAnswer.safeParse(JSON.parse(payload ?? '')).data ?? null
  } catch {
    return null
  }
}
