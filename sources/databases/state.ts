import type { DatabaseState } from '../../domain/database-state.ts'
import type { AskDatabase } from './connect.ts'
import type { ServerReader } from './reader.ts'

/** Reads the present state of a database server for its page. */

const maxTransactions = 10
/** Transactions up to this age in seconds are normal. */
const longSeconds = 10

export async function readState(ask: AskDatabase, reader: ServerReader): Promise<DatabaseState> {
  const { waiting, roots } = await reader.readBlocking(ask)
  const { used, max, reserved } = await reader.readConnections(ask)
  const { role, parts, lagBytes } = await reader.readReplication(ask)
  const { long } = await reader.readTransactions(ask)
  const { server } = await ask({ sql: 'select 1' })
  return {
    product: server.product,
    version: server.version,
    role,
    connections: { used, max, reserved },
    waiting,
    blocking: roots.map(({ root, blocks, tree }) => ({ root, blocks, tree })),
    transactions: long.filter(({ openSeconds }) => openSeconds >= longSeconds).slice(0, maxTransactions),
    replication: parts,
    lagBytes,
  }
}
