import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type pg from 'pg'
import { type Db, separateClient, type Trx } from './connect.ts'

/**
 * The channel of messages about devices whose connection, manifest or permission changed. A message
 * is the id of the device.
 */
export const meshChannel = 'nightshift_mesh'

/** The channel of messages from one API process to another. */
export const processChannel = (processId: string) => `nightshift_mesh_${processId.replaceAll('-', '')}`

/** Sends a message to all listeners of a channel once the transaction is committed. */
export async function notify(db: Db | Trx, channel: string, text: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${text})`.execute(db)
}

const againMs = 1_000

type Notices = {
  /** False while no message can be received, so that the caller must poll. */
  isListening(): boolean
  stop(): Promise<void>
}

/**
 * Listens for messages on a separate connection, and reconnects if it breaks. Calls `up` each time
 * that it begins to listen again, because messages in between are lost.
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
