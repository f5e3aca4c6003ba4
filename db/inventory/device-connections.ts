import { sql } from 'kysely'
import { now, onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { meshChannel, notify } from '../notices.ts'

/** Seconds of silence after which a process and its connections count as ended. */
const processSeconds = 20
const seenLately = sql<boolean>`mesh_process.seen_at > ${onceNow} - make_interval(secs => ${processSeconds})`

/**
 * The current connection of an agent that connects to the API, or its last connection if it is not
 * connected now.
 */
export type DeviceConnection = {
  deviceId: string
  connection: string
  processId: string | null
  /** The process that has the connection, by its name for people. */
  process: string
  /** The address from which the agent connects. */
  address: string
  agentVersion: string
  connectedAt: string
  isConnected: boolean
  /** The end of the connection; null while it exists. */
  endedAt: string | null
}

const connections = (db: Db | Trx) =>
  db
    .selectFrom('deviceConnection')
    .leftJoin('meshProcess', 'meshProcess.id', 'deviceConnection.processId')
    .select(['deviceId', 'connection', 'processId', 'process', 'address', 'agentVersion', 'connectedAt'])
    .select(sql<boolean>`ended_at is null and coalesce(${seenLately}, false)`.as('isConnected'))
    .select(
      sql<string | null>`case when ended_at is null and not coalesce(${seenLately}, false)
        then mesh_process.seen_at else ended_at end`.as('endedAt'),
    )

export async function connectionOf(db: Db | Trx, deviceId: string): Promise<DeviceConnection | null> {
  return (await connections(db).where('deviceId', '=', deviceId).executeTakeFirst()) ?? null
}

export async function listConnections(db: Db): Promise<Map<string, DeviceConnection>> {
  return new Map((await connections(db).execute()).map((row) => [row.deviceId, row]))
}

type NewConnection = Pick<DeviceConnection, 'deviceId' | 'connection' | 'process' | 'address' | 'agentVersion'> & {
  processId: string
}

/**
 * Stores a connection as the connection of its device. When the transaction ends, the process with
 * an earlier connection is notified.
 */
export async function holdConnection(trx: Trx, held: NewConnection): Promise<void> {
  const begun = { ...held, connectedAt: now, endedAt: null }
  await trx
    .insertInto('deviceConnection')
    .values(begun)
    .onConflict((conflict) => conflict.column('deviceId').doUpdateSet(begun))
    .execute()
  await tellOfDevice(trx, held.deviceId)
}

/**
 * Returns which of these connections their devices still have. A connection that counted as ended
 * while this process was silent is valid again.
 */
export async function keepConnections(db: Db, processId: string, held: string[]): Promise<Set<string>> {
  if (held.length === 0) return new Set()
  await db
    .updateTable('deviceConnection')
    .set({ processId, endedAt: null })
    .where('connection', 'in', held)
    .where('endedAt', 'is not', null)
    .execute()
  const rows = await db.selectFrom('deviceConnection').select('connection').where('connection', 'in', held).execute()
  return new Set(rows.map(({ connection }) => connection))
}

/** Records the end of a connection, unless another connection has replaced it. */
export async function endConnection(db: Db, { deviceId, connection }: { deviceId: string; connection: string }) {
  await db
    .updateTable('deviceConnection')
    .set({ endedAt: now, processId: null })
    .where('connection', '=', connection)
    .where('endedAt', 'is', null)
    .execute()
  await tellOfDevice(db, deviceId)
}

/** Ends every connection of a device. The process that has a connection closes it at once. */
export async function forbidConnection(trx: Trx, deviceId: string): Promise<void> {
  await trx.deleteFrom('deviceConnection').where('deviceId', '=', deviceId).execute()
  await tellOfDevice(trx, deviceId)
}

/**
 * Announces a change of a device: of its connection, of its manifest, or of the permission to call
 * it.
 */
export async function tellOfDevice(db: Db | Trx, deviceId: string): Promise<void> {
  await notify(db, meshChannel, deviceId)
}

/** Records that this API process runs. */
export async function noteProcess(db: Db, { id, name }: { id: string; name: string }): Promise<void> {
  await db
    .insertInto('meshProcess')
    .values({ id, name, seenAt: now })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ seenAt: now }))
    .execute()
}

/** Ends this API process and its connections in the database. */
export async function endProcess(db: Db, id: string): Promise<void> {
  const ended = await db
    .updateTable('deviceConnection')
    .set({ endedAt: now, processId: null })
    .where('processId', '=', id)
    .where('endedAt', 'is', null)
    .returning('deviceId')
    .execute()
  for (const { deviceId } of ended) await tellOfDevice(db, deviceId)
  await db.deleteFrom('meshProcess').where('id', '=', id).execute()
}

/**
 * Ends API processes that were silent for long, and their connections, with the time at which the
 * processes were last seen.
 */
export async function endLostProcesses(db: Db): Promise<void> {
  const { rows } = await sql<{ deviceId: string }>`
    update device_connection set ended_at = mesh_process.seen_at, process_id = null
    from mesh_process where mesh_process.id = device_connection.process_id and ended_at is null and not ${seenLately}
    returning device_id`.execute(db)
  for (const { deviceId } of rows) await tellOfDevice(db, deviceId)
  await sql`delete from mesh_process where not ${seenLately}`.execute(db)
}
