import type { DatabaseState } from '../../domain/database-state.ts'
import { formatSize } from '../../domain/format-approval.ts'
import { readBlocking } from './blocking.ts'
import type { AskDatabase } from './connect.ts'
import { readConnections } from './connections.ts'
import { readReplication } from './replication.ts'
import { readTransactions } from './transactions.ts'

/** A server as people see it on its page. */

const maxTransactions = 10
/** More than a segment of WAL: what is less is on its way. */
const lagsFromBytes = 16_777_216
/** Shorter transactions are the server's daily work. */
const longSeconds = 10

export async function readState(ask: AskDatabase): Promise<DatabaseState> {
  const { waiting, roots } = await readBlocking(ask)
  const { used, max, reserved } = await readConnections(ask)
  const replication = await readReplication(ask)
  const { long } = await readTransactions(ask)
  const { server } = await ask({ sql: 'select 1' })
  return {
    product: server.product,
    version: server.version,
    role: replication.role,
    connections: { used, max, reserved },
    waiting,
    blocking: roots.map(({ root, blocks, tree }) => ({ root, blocks, tree })),
    transactions: long.filter(({ openSeconds }) => openSeconds >= longSeconds).slice(0, maxTransactions),
    replication: sayParts(replication),
    lagBytes: findLag(replication),
  }
}

type Replication = Awaited<ReturnType<typeof readReplication>>

/** Of a replica what it has received and not replayed, of a primary what the replica furthest behind has not replayed. */
function findLag({ role, standbys, replica }: Replication): number | null {
  if (role === 'replica') return Number(replica?.received_not_replayed_bytes ?? 0)
  const behind = standbys.map(({ not_replayed_bytes }) => Number(not_replayed_bytes ?? 0))
  return behind.length === 0 ? null : Math.max(...behind)
}

function sayParts({ role, standbys, slots, replica, receiver }: Replication): DatabaseState['replication'] {
  const kept = slots.map(({ slot, type, active, keeps_bytes }) => ({
    text: `${type} slot ${slot}, ${active ? 'in use' : 'inactive'}, keeps ${formatSize(Number(keeps_bytes ?? 0))}`,
    isIll: active !== true,
  }))
  if (role === 'primary') {
    const sent = standbys.map(({ name, from, state, sync_state, not_replayed_bytes }) => ({
      text: `${name} at ${from ?? 'this machine'}: ${state}, ${sync_state}, ${formatSize(Number(not_replayed_bytes ?? 0))} behind`,
      isIll: state !== 'streaming' || Number(not_replayed_bytes ?? 0) > lagsFromBytes,
    }))
    return [...sent, ...kept]
  }
  const behind = formatSize(Number(replica?.received_not_replayed_bytes ?? 0))
  const received = receiver
    ? {
        text: `receives from ${receiver.sender_host}:${receiver.sender_port}, ${receiver.status}`,
        isIll: receiver.status !== 'streaming',
      }
    : { text: 'receives nothing: no WAL receiver runs', isIll: true }
  const isPaused = replica?.replay_paused === true
  return [
    received,
    {
      text: isPaused ? `replay is paused, ${behind} wait` : `replays, ${behind} behind what it received`,
      isIll: isPaused,
    },
    ...kept,
  ]
}
