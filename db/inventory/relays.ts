import { sql } from 'kysely'
import { inSeconds, onceNow } from '../clock.ts'
import type { Db } from '../connect.ts'
import { notify, processChannel } from '../notices.ts'

/**
 * Requests of an API process to a device whose connection another one holds. Rows live until taken,
 * sealed under a key of the mesh, and hold no address or plain word of a device.
 */
export type Relay = { id: string; deviceId: string; toProcess: string; fromProcess: string; sealed: Buffer }

export async function askRelay(db: Db, relay: Relay, seconds: number): Promise<void> {
  await db
    .insertInto('meshRelay')
    .values({ ...relay, expiresAt: inSeconds(seconds) })
    .execute()
  await notify(db, processChannel(relay.toProcess), 'ask')
}

/** What this process is to pass on: each to exactly one caller, and nothing whose time is over. */
export async function takeRelays(db: Db, toProcess: string): Promise<Relay[]> {
  return await db
    .deleteFrom('meshRelay')
    .where('toProcess', '=', toProcess)
    .where('expiresAt', '>', onceNow)
    .returning(['id', 'deviceId', 'toProcess', 'fromProcess', 'sealed'])
    .execute()
}

/** Takes back what nobody has taken: true where it is certain that nothing was passed on. */
export async function withdrawRelay(db: Db, id: string): Promise<boolean> {
  return (await db.deleteFrom('meshRelay').where('id', '=', id).returning('id').executeTakeFirst()) !== undefined
}

/** The caller has gone: the exchange may end. */
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

/** Pieces for this process, those of one answer in order; none when there are no more. */
export async function takePieces(db: Db, toProcess: string): Promise<RelayPiece[]> {
  const { rows } = await sql<RelayPiece>`
    delete from mesh_relay_piece where (relay_id, n) in
      (select relay_id, n from mesh_relay_piece where to_process = ${toProcess} order by relay_id, n limit ${maxTaken})
    returning relay_id, n, sealed`.execute(db)
  return rows
}

/** Removes what nobody takes any more. */
export async function sweepRelays(db: Db): Promise<void> {
  await db.deleteFrom('meshRelay').where('expiresAt', '<=', onceNow).execute()
  await db.deleteFrom('meshRelayPiece').where('expiresAt', '<=', onceNow).execute()
}
