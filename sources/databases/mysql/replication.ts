import { type ReplicaChannel, readChannels } from '../../../clients/databases/mysql-replicas.ts'
import { processlistOf, statusOf } from '../../../clients/databases/mysql-views.ts'
import { formatCount } from '../../../domain/format.ts'
import { formatSize } from '../../../domain/format-approval.ts'
import { fitSummary } from '../../kind.ts'
import type { AskDatabase } from '../connect.ts'
import type { Question } from '../question.ts'
import type { SaidReplication } from '../reader.ts'
import type { SqlRow } from '../sessions.ts'

/**
 * Replication of MySQL and MariaDB: what a replica receives and applies, with its errors, and the
 * replicas that read from a primary.
 */

type Replication = {
  role: 'primary' | 'replica'
  channels: ReplicaChannel[]
  readers: SqlRow[]
  isReadOnly: boolean
  /** State of the server's Galera cluster. Null if the server is not part of a cluster. */
  cluster: { status: string; size: number; state: string } | null
}

export async function readReplication(ask: AskDatabase): Promise<Replication> {
  const { server } = await ask({ sql: 'select 1' })
  const channels = await readChannels(ask, server)
  const readers = await ask({
    sql: `select user, host as \`from\`, state as doing, time as seconds from ${processlistOf(server)} where command like 'Binlog Dump%' limit 20`,
  })
  const [{ read_only = 0 } = {}] = (await ask({ sql: 'select @@global.read_only as read_only' })).rows
  const galera = (
    await ask({
      sql: `select lower(variable_name) as name, variable_value as value from ${statusOf(server)}
        where variable_name in ('wsrep_cluster_status', 'wsrep_cluster_size', 'wsrep_local_state_comment', 'wsrep_ready')`,
    })
  ).rows
  const of = (name: string) => galera.find((row) => row.name === name)?.value
  return {
    role: channels.length > 0 ? 'replica' : 'primary',
    channels,
    readers: readers.rows,
    isReadOnly: Number(read_only) === 1,
    cluster:
      Number(of('wsrep_cluster_size') ?? 0) > 0
        ? {
            status: String(of('wsrep_cluster_status')),
            size: Number(of('wsrep_cluster_size')),
            state: String(of('wsrep_local_state_comment')),
          }
        : null,
  }
}

/** The received but unapplied bytes from which a replica counts as lagging. */
const lagsFromBytes = 16_777_216
const lagsFromSeconds = 30

const nameOf = ({ channel, from }: ReplicaChannel): string => `from ${from}${channel === '' ? '' : ` (${channel})`}`

function sayChannel(each: ReplicaChannel): DatabasePart {
  const { receiver, applier, receiverError, applierError, behindSeconds, waitsBytes, delaySeconds } = each
  const isStopped = receiver !== 'Yes' || applier !== 'Yes'
  const isLate = waitsBytes > lagsFromBytes || (behindSeconds ?? 0) > delaySeconds + lagsFromSeconds
  const said = [
    receiver === 'Yes'
      ? `receives ${nameOf(each)}`
      : `does not receive ${nameOf(each)}${receiver === 'Connecting' ? ', it connects' : ''}`,
    receiverError && `its receiver: ${receiverError.text}`,
    applier === 'Yes'
      ? 'applies'
      : `its applier is stopped${applierError ? `: ${applierError.text}` : ', without an error'}`,
    behindSeconds !== null && `${behindSeconds} s behind${delaySeconds > 0 ? ` (configured: ${delaySeconds} s)` : ''}`,
    waitsBytes > 0 && `${formatSize(waitsBytes)} received and not applied`,
  ]
  return {
    text: said.filter(Boolean).join('; '),
    isIll: isStopped || isLate || applierError !== null || receiverError !== null,
  }
}
type DatabasePart = SaidReplication['parts'][number]

/** Describes replication for the page and the first turn of an investigation. */
export async function sayReplication(ask: AskDatabase): Promise<SaidReplication> {
  const { role, channels, readers, cluster } = await readReplication(ask)
  const parts: DatabasePart[] = [
    ...channels.map(sayChannel),
    ...readers.map(({ from, user, doing }) => ({ text: `${user} at ${from} reads from it: ${doing}`, isIll: false })),
    ...(cluster
      ? [
          {
            text: `Galera, ${cluster.size} nodes, ${cluster.status}, this one ${cluster.state}`,
            isIll: cluster.status !== 'Primary' || cluster.state !== 'Synced',
          },
        ]
      : []),
  ]
  return {
    role,
    facts: parts.map(({ text }) => text),
    parts,
    lagBytes: channels.length > 0 ? Math.max(...channels.map(({ waitsBytes }) => waitsBytes)) : null,
  }
}

export const replication: Question = {
  name: 'replication',
  asks: '',
  async read(ask) {
    const { server } = await ask({ sql: 'select 1' })
    const { role, channels, readers, isReadOnly, cluster } = await readReplication(ask)
    return {
      summary: fitSummary(channels, (kept, omitted) => ({
        product: server.product,
        role,
        readOnly: isReadOnly,
        channels: kept.map(({ receiverError, applierError, channel, ...each }) => ({
          ...(channel !== '' && { channel }),
          ...each,
          receiverError: receiverError?.text ?? 'none',
          applierError: applierError?.text ?? 'none',
        })),
        readers: readers.slice(0, 5),
        ...(cluster && { galera: cluster }),
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: [...channels, ...readers].map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: false,
    }
  },
  say: ({ role, channels, readers }) => {
    const [first] = (channels ?? []) as (Pick<ReplicaChannel, 'applier' | 'receiver' | 'behindSeconds'> & {
      applierError: string
    })[]
    if (role === 'primary' || !first)
      return `primary, replicated by ${formatCount(((readers ?? []) as unknown[]).length, 'replica')}`
    const error = first.applierError === 'none' ? '' : `, ${first.applierError}`
    return `replica, receiver ${first.receiver}, applier ${first.applier}${error}${first.behindSeconds === null ? '' : `, ${first.behindSeconds} s behind`}`
  },
}
