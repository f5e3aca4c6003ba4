import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type pg from 'pg'
import { type Db, separateClient, type Trx } from './connect.ts'

/** Devices whose connection, manifest or right has changed, by id. */
export const meshChannel = 'nightshift_mesh'

/** What one process of the API passes to another. */
export const processChannel = (processId: string) => `nightshift_mesh_${processId.replaceAll('-', '')}`

/** Tells all who listen, once the transaction is committed. */
export async function notify(db: Db | Trx, channel: string, text: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${text})`.execute(db)
}

const againMs = 1_000

type Notices = {
  /** False while nobody can tell us anything: who needs to know asks. */
  isListening(): boolean
  stop(): Promise<void>
}

/**
 * Listens on a separate connection, and connects again where it is lost. Calls `up` each time it
 * listens again: nobody repeats what was said meanwhile.
 */
export function listenTo(
  db: Db,
  channels: readonly string[],
  on: { notice(channel: string, text: string): void; up(): void },
): Notices {
  let isListening = false
  let client: pg.Client | null = null
  const stopping = new AbortController()

  async function listenOnce(): Promise<void> {
    const own = separateClient(db, 'nightshift-api-listen')
    client = own
    const ended = new Promise<void>((resolve) => {
      own.on('error', () => resolve())
      own.on('end', () => resolve())
    })
    try {
      await own.connect()
      own.on('notification', ({ channel, payload }) => on.notice(channel, payload ?? ''))
      for (const channel of channels) await own.query(`listen ${channel}`)
      isListening = true
      on.up()
      await ended
    } finally {
      isListening = false
      await own.end().catch(() => {})
    }
  }
  const listening = (async () => {
    while (!stopping.signal.aborted) {
      await listenOnce().catch(() => {})
      await sleep(againMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    isListening: () => isListening,
    async stop() {
      stopping.abort()
      await client?.end().catch(() => {})
      await listening
    },
  }
}
