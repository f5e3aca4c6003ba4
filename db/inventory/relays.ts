import { sql } from 'kysely'
import { inSeconds, onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'
import { notify, processChannel } from '../notices.ts'

/**
 * A request of an API process to a device whose connection another process has. A row exists until
 * the request is taken. The request is sealed with a key of the mesh, so that the row contains no
 * address or plain text of a device.
 */
export type Relay = { id: string; deviceId: string; toProcess: string; fromProcess: string; sealed: Buffer }

export async function askRelay(db: Db, relay: Relay, seconds: number): Promise<void> {
  await db
    .insertInto('meshRelay')
    .values({ ...relay, expiresAt: inSeconds(seconds) })
    .execute()
  await notify(db, processChannel(relay.toProcess), 'ask')
}

/**
 * Takes the requests for this process. Each request goes to exactly one caller, and expired
 * requests go to none.
 */
export async function takeRelays(db: Db, toProcess: string): Promise<Relay[]> {
  return await db
    .deleteFrom('meshRelay')
    .where('toProcess', '=', toProcess)
    .where('expiresAt', '>', onceNow)
    .returning(['id', 'deviceId', 'toProcess', 'fromProcess', 'sealed'])
    .execute()
}

/** Withdraws a request that no process has taken. True if it was certainly not passed on. */
export async function withdrawRelay(db: Db, id: string): Promise<boolean> {
  return (await db.deleteFrom('meshRelay').where('id', '=', id).returning('id').executeTakeFirst()) !== undefined
}

/** Ends the exchange about a request, because its caller has gone. */
export async function dropRelay(db: Db, { id, toProcess }: Pick<Relay, 'id' | 'toProcess'>): Promise<void> {
  await notify(db, processChannel(toProcess), `drop ${id}`)
}

export type RelayPiece = { relayId: string; n: number; sealed: Buffer }

export async function answerRelay(db: Db, piece: RelayPiece, toProcess: string, seconds: number): Promise<void> {
  await db
    .insertInto('meshRelayPiece')
    .values({ ...piece, toProcess, expiresAt: inSeconds(seconds) })
    .execute()
  await notify(db, processChannel(toProcess), 'pieces')
}

const maxTaken = 32

/** Takes pieces of responses for this process, in order within each. Empty if there are none. */
export async function takePieces(db: Db, toProcess: string): Promise<RelayPiece[]> {
  const { rows } = await sql<RelayPiece>`
    delete from mesh_relay_piece where (relay_id, n) in
      (select relay_id, n from mesh_relay_piece where to_process = ${toProcess} order by relay_id, n limit ${maxTaken})
    returning relay_id, n, sealed`.execute(db)
  return rows
}

/** Deletes expired requests and pieces, which no process takes any more. */
export async function sweepRelays(db: Db): Promise<void> {
  await db.deleteFrom('meshRelay').where('expiresAt', '<=', onceNow).execute()
  await db.deleteFrom('meshRelayPiece').where('expiresAt', '<=', onceNow).execute()
}
