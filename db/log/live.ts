import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Client } from 'pg'
import { type LiveAnswer, liveAnswer } from '../../domain/chat.ts'
import { type Db, separateClient } from '../connect.ts'

/**
 * Text that models write now, from the hearing worker to the API processes that show it. PostgreSQL
 * passes it on and keeps nothing.
 */

const channel = 'nightshift_live_answers'
/** PostgreSQL passes on 8,000 bytes. */
const maxBytes = 7_500
const reopenMs = 1_000

/**
 * A listener holds a lock of its subject, an incident or all: one that is gone holds none, and no
 * row has to say so.
 */
const lockSpace = 0x6c697665
export const allIncidents = 'all'
const lockOf = (watched: string) => sql`${sql.lit(lockSpace)}::int, hashtext(${watched})`
/** A listener that comes or goes is known within this time. */
const agreeEveryMs = 200
/** A connection dropped in silence hears and says nothing: it is asked this often. */
const askEveryMs = 5_000

/**
 * Tells all listeners of this incident; without one, writes nothing. Answers whether it told. Too
 * long a text is left out. Two calls at once may take each other for a listener, and write what
 * nobody hears.
 */
export async function publishLiveAnswer(db: Db, live: LiveAnswer): Promise<boolean> {
  const whole = JSON.stringify(live)
  const payload = Buffer.byteLength(whole) > maxBytes ? JSON.stringify({ ...live, tail: '' }) : whole
  // A lock that nobody holds can be had: it is let go of with the statement.
  const { rows } = await sql`
    select pg_notify(${channel}, ${payload})
    where not (pg_try_advisory_xact_lock(${lockOf(live.incidentId)}) and pg_try_advisory_xact_lock(${lockOf(allIncidents)}))`.execute(
    db,
  )
  return rows.length > 0
}

/**
 * Calls `hear` for every word until the signal ends it, on a connection that is opened again when
 * lost. `watched`: the current subjects, incidents by id or `allIncidents`; workers tell of nothing
 * else.
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
      // The database is away: it is tried again.
    }
    signal.removeEventListener('abort', end)
    await client.end().catch(() => {})
    if (!signal.aborted) await sleep(reopenMs)
  }
}

/** Takes the locks of what is listened to from now on, and lets go of the others. */
async function agree(client: Client, held: Set<string>, watched: readonly string[]): Promise<void> {
  for (const each of watched.filter((one) => !held.has(one))) {
    // A teller holds it for a moment: then it is taken the next time.
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

/** Anybody who may connect to the database can tell: what has not the form is passed over. */
function read(payload: string | undefined): LiveAnswer | null {
  try {
    return liveAnswer.safeParse(JSON.parse(payload ?? '')).data ?? null
  } catch {
    return null
  }
}
