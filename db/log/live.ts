import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Client } from 'pg'
import { type LiveAnswer, liveAnswer } from '../../domain/chat.ts'
import { type Db, separateClient } from '../connect.ts'

/**
 * Sends the unfinished text of models from the worker to the API processes that show it. PostgreSQL
 * passes the text on and stores nothing.
 */

const channel = 'nightshift_live_answers'
/** Maximum bytes of a message, below PostgreSQL's limit of 8,000 bytes. */
const maxBytes = 7_500
const reopenMs = 1_000

/**
 * The namespace of the listeners' locks. A listener holds a lock on its subject: an incident, or
 * all incidents. If the listener dies, its lock becomes free, and no row is left.
 */
const lockSpace = 0x6c697665
export const allIncidents = 'all'
const lockOf = (watched: string) => sql`${sql.lit(lockSpace)}::int, hashtext(${watched})`
/** Milliseconds until senders know of a new or ended listener. */
const agreeEveryMs = 200
/** Milliseconds between checks of a connection, because it may be lost without an error. */
const askEveryMs = 5_000

/**
 * Sends the unfinished text of a model to all listeners of its incident. Writes nothing if nobody
 * listens. Returns whether a message was sent. Leaves out a text that is too long. Two simultaneous
 * calls may each take the other for a listener and send although nobody listens.
 */
export async function publishLiveAnswer(db: Db, live: LiveAnswer): Promise<boolean> {
  const whole = JSON.stringify(live)
  const payload = Buffer.byteLength(whole) > maxBytes ? JSON.stringify({ ...live, tail: '' }) : whole
  // Sends only if one of the two locks is not free, because free locks mean that nobody listens.
  // The locks are released at the end of the statement.
  const { rows } = await sql`
    select pg_notify(${channel}, ${payload})
    where not (pg_try_advisory_xact_lock(${lockOf(live.incidentId)}) and pg_try_advisory_xact_lock(${lockOf(allIncidents)}))`.execute(
    db,
  )
  return rows.length > 0
}

/**
 * Calls `hear` for every message until `signal` aborts, on a connection that is reopened if it is
 * lost. `watched`: the current subjects, which are ids of incidents or `allIncidents`. Workers send
 * nothing about any other subject.
 */
export async function listenForLiveAnswers(
  db: Db,
  hear: (live: LiveAnswer) => void,
  signal: AbortSignal,
  watched: () => readonly string[] = () => [allIncidents],
): Promise<void> {
  while (!signal.aborted) {
    const lost = new AbortController()
    const client = separateClient(db, 'nightshift-live')
    const end = () => lost.abort()
    client.on('error', end).on('end', end)
    client.on('notification', ({ payload }) => {
      const live = read(payload)
      if (live) hear(live)
    })
    signal.addEventListener('abort', end, { once: true })
    try {
      await client.connect()
      await client.query(`listen ${channel}`)
      const held = new Set<string>()
      for (let askedMs = performance.now(); !lost.signal.aborted; ) {
        await agree(client, held, watched())
        if (performance.now() - askedMs > askEveryMs) {
          await client.query('select 1')
          askedMs = performance.now()
        }
        await sleep(agreeEveryMs, undefined, { signal: lost.signal }).catch(() => {})
      }
    } catch {
      // Ignores the error, because the loop tries an unavailable database again.
    }
    signal.removeEventListener('abort', end)
    await client.end().catch(() => {})
    if (!signal.aborted) await sleep(reopenMs)
  }
}

/** Takes the locks of the current subjects, and releases the locks of all other subjects. */
async function agree(client: Client, held: Set<string>, watched: readonly string[]): Promise<void> {
  for (const each of watched.filter((one) => !held.has(one))) {
    // Skips a lock that a sender holds for a moment. The lock is taken the next time.
    const { rows } = await client.query('select pg_try_advisory_lock_shared($1::int, hashtext($2)) as taken', [
      lockSpace,
      each,
    ])
    if (rows[0]?.taken) held.add(each)
  }
  for (const each of [...held].filter((one) => !watched.includes(one))) {
    await client.query('select pg_advisory_unlock_shared($1::int, hashtext($2))', [lockSpace, each])
    held.delete(each)
  }
}

/**
 * Parses a message. Ignores a message of another form, because everybody with a connection to the
 * database can send messages.
 */
function read(payload: string | undefined): LiveAnswer | null {
  try {
    return liveAnswer.safeParse(JSON.parse(payload ?? '')).data ?? null
  } catch {
    return null
  }
}
