import { toTimeSql } from '../../clients/databases/postgres.ts'
import { formatCount } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import { fitSummary } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import type { Question } from './question.ts'
import type { SqlRow } from './sessions.ts'

/**
 * Replication of PostgreSQL, with its delays. For a primary: its replicas and slots. For a replica:
 * what it receives and replays.
 */

const roleSql = 'select pg_is_in_recovery() as replica'

const standbysSql = `
  select pid, usename as user, application_name as name, host(client_addr) as from, state, sync_state,
    pg_wal_lsn_diff(pg_current_wal_lsn(), sent_lsn)::bigint as not_sent_bytes,
    pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint as not_replayed_bytes,
    extract(epoch from replay_lag)::numeric(12, 1) as replay_lag_seconds
  from pg_stat_replication order by not_replayed_bytes desc nulls first limit 20`

/**
 * Selects replication slots. `restart_lsn` is the position from which a slot keeps WAL. A replica
 * compares it with the received position.
 */
const slotsSql = (isReplica: boolean, major: number): string => `
  select slot_name as slot, slot_type as type, plugin, database, active, active_pid,
    pg_wal_lsn_diff(${isReplica ? 'pg_last_wal_receive_lsn()' : 'pg_current_wal_lsn()'}, restart_lsn)::bigint as keeps_bytes,
    ${major >= 13 ? 'wal_status, safe_wal_size as room_bytes,' : ''}
    age(coalesce(xmin, catalog_xmin)) as keeps_transactions${major >= 17 ? `, ${toTimeSql('inactive_since')} as inactive_since` : ''}
  from pg_replication_slots order by keeps_bytes desc nulls last limit 20`

const replicaSql = (major: number): string => `
  select pg_is_wal_replay_paused() as replay_paused,
    ${major >= 14 ? 'pg_get_wal_replay_pause_state() as pause_state,' : ''}
    pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::bigint as received_not_replayed_bytes,
    ${toTimeSql('pg_last_xact_replay_timestamp()')} as last_replayed,
    case when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
      else extract(epoch from now() - pg_last_xact_replay_timestamp())::numeric(12, 1) end as behind_seconds,
    current_setting('max_standby_streaming_delay') as waits_for_queries_at_most,
    current_setting('hot_standby_feedback') as hot_standby_feedback`

const receiverSql = `
  select status, sender_host, sender_port, slot_name as slot, ${toTimeSql('last_msg_receipt_time')} as last_message
  from pg_stat_wal_receiver`

/** Sessions of a replica whose snapshots delay the replay. */
const holdUpSql = `
  select pid, usename as user, application_name as name, state, ${toTimeSql('xact_start')} as transaction_since
  from pg_stat_activity where backend_xmin is not null and backend_type = 'client backend' and pid <> pg_backend_pid()
  order by xact_start limit 3`

export type Replication = {
  role: 'primary' | 'replica'
  standbys: SqlRow[]
  slots: SqlRow[]
  replica?: SqlRow
  receiver?: SqlRow | null
  holdsUp?: SqlRow[]
}

export async function readReplication(ask: AskDatabase): Promise<Replication> {
  const { rows, server } = await ask({ sql: roleSql })
  const isReplica = rows[0]?.replica === true
  const slots = (await ask({ sql: slotsSql(isReplica, server.major) })).rows
  if (!isReplica) return { role: 'primary', standbys: (await ask({ sql: standbysSql })).rows, slots }
  const [replica = {}] = (await ask({ sql: replicaSql(server.major) })).rows
  const [receiver = null] = (await ask({ sql: receiverSql })).rows
  const isBehind = Number(replica.received_not_replayed_bytes) > 0
  const holdsUp = isBehind ? (await ask({ sql: holdUpSql })).rows : []
  return { role: 'replica', standbys: [], slots, replica, receiver, ...(holdsUp.length > 0 && { holdsUp }) }
}

const withoutEmpty = (row: SqlRow): SqlRow =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))

export const replication: Question = {
  name: 'replication',
  asks: 'replicas, lag, slots and what they keep',
  async read(ask) {
    const { role, standbys, slots, ...own } = await readReplication(ask)
    const items = [
      ...standbys.map((each) => ({ standby: withoutEmpty(each) })),
      ...slots.map((each) => ({ slot: withoutEmpty(each) })),
    ]
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        role,
        ...('replica' in own && { ...own, receiver: own.receiver ?? 'none: nothing is received' }),
        standbys: kept.flatMap((each) => ('standby' in each ? [each.standby] : [])),
        slots: kept.flatMap((each) => ('slot' in each ? [each.slot] : [])),
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: [...items, own].map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: false,
    }
  },
  say: ({ role, standbys, slots, replica }) => {
    const kept = ((slots ?? []) as SqlRow[]).filter(({ active }) => active === false)
    const [first] = kept
    const slot = first ? `; inactive slot ${first.slot} keeps ${formatSize(Number(first.keeps_bytes ?? 0))}` : ''
    if (role === 'primary') return `primary with ${formatCount((standbys as SqlRow[]).length, 'replica')}${slot}`
    const { replay_paused, behind_seconds } = replica as SqlRow
    return `replica, ${replay_paused ? 'its replay is paused' : `${behind_seconds ?? '?'} s behind`}${slot}`
  },
}
