import type { ServerFacts, SqlAnswer, SqlStatement, SqlValue } from './server.ts'

/**
 * Reads the replicas of MySQL and MariaDB from their status, whose columns have other names in each
 * version.
 */

/**
 * One connection of a replica to a primary. Error texts contain values of rows, so only their
 * numbers and tables are reported.
 */
export type ReplicaChannel = {
  channel: string
  from: string
  receiver: string
  applier: string
  receiverError: ReplicaError | null
  applierError: ReplicaError | null
  behindSeconds: number | null
  /** Bytes that the replica has received and not yet applied. */
  waitsBytes: number
  delaySeconds: number
  position: string
}
type ReplicaError = { number: number; text: string }

type StatusRow = Record<string, SqlValue>

/** Returns the query for replicas. MariaDB has a row per named connection, MySQL per channel. */
const replicaSql = ({ product, number }: ServerFacts): string =>
  product === 'MariaDB' ? 'show all slaves status' : number >= 80_022 ? 'show replica status' : 'show slave status'

/**
 * Errors that stop an applier or receiver
 * (https://mariadb.com/kb/en/mariadb-error-code-reference/).
 */
const errorWords: Record<number, string> = {
  1032: 'a row to change does not exist',
  1045: 'the primary refused the login of the replica',
  1062: 'a row with that key exists already',
  1146: 'a table does not exist',
  1205: 'the applier waited too long for a lock',
  1213: 'a deadlock',
  1236: 'the primary does not have the position of the replica',
  1396: 'a statement about users failed',
  1593: 'the replica cannot read from that primary',
  1594: 'the relay log cannot be read',
  1677: 'a column has another type',
  2003: 'the primary cannot be reached',
  2013: 'the connection broke',
}

function toError(number: unknown, text: unknown): ReplicaError | null {
  if (Number(number) === 0) return null
  const table = /\bon table ([\w$]+\.[\w$]+)/.exec(String(text))?.[1]
  const words = errorWords[Number(number)]
  return {
    number: Number(number),
    text: `error ${Number(number)}${words ? ` (${words})` : ''}${table ? ` on table ${table}` : ''}`,
  }
}

/**
 * Returns the value of the first of these columns that exists. Both products renamed columns of the
 * status over the years.
 */
const pick = (row: StatusRow, ...names: string[]) =>
  names.map((name) => row[name]).find((value) => value !== undefined) ?? null

function toChannel(row: StatusRow): ReplicaChannel {
  const file = pick(row, 'Source_Log_File', 'Master_Log_File')
  const applied = pick(row, 'Relay_Source_Log_File', 'Relay_Master_Log_File')
  const [read, done] = [
    pick(row, 'Read_Source_Log_Pos', 'Read_Master_Log_Pos'),
    pick(row, 'Exec_Source_Log_Pos', 'Exec_Master_Log_Pos'),
  ]
  const behind = pick(row, 'Seconds_Behind_Source', 'Seconds_Behind_Master')
  return {
    channel: String(pick(row, 'Connection_name', 'Channel_Name') ?? ''),
    from: `${pick(row, 'Source_Host', 'Master_Host')}:${pick(row, 'Source_Port', 'Master_Port')}`,
    receiver: String(pick(row, 'Replica_IO_Running', 'Slave_IO_Running')),
    applier: String(pick(row, 'Replica_SQL_Running', 'Slave_SQL_Running')),
    receiverError: toError(row.Last_IO_Errno, row.Last_IO_Error),
    applierError: toError(row.Last_SQL_Errno, row.Last_SQL_Error),
    behindSeconds: behind === null ? null : Number(behind),
    waitsBytes: file === applied ? Math.max(0, Number(read) - Number(done)) : Number(row.Relay_Log_Space ?? 0),
    delaySeconds: Number(row.SQL_Delay ?? 0),
    position: `${applied}:${done}`,
  }
}

export const readChannels = async (
  ask: (statement: SqlStatement) => Promise<SqlAnswer>,
  server: ServerFacts,
): Promise<ReplicaChannel[]> => (await ask({ sql: replicaSql(server) })).rows.map(toChannel)
