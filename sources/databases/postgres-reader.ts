import type { DatabaseState } from '../../domain/database-state.ts'
import { formatSpan } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import { readBlocking } from './blocking.ts'
import type { AskDatabase } from './connect.ts'
import { readConnections } from './connections.ts'
import type { SaidReplication, ServerReader } from './reader.ts'
import { type Replication, readReplication } from './replication.ts'
import type { SqlRow } from './sessions.ts'
import { readTransactions } from './transactions.ts'

/** Reads PostgreSQL for the server's page and an investigation's first turn. */

/** Bytes from which a replica counts as lagging: more than a segment of WAL. */
const lagsFromBytes = 16_777_216
/** Seconds for which an event counts as a recent change. */
const recentSeconds = 3_600

export const postgresReader: ServerReader = {
  readBlocking,
  readConnections,
  readTransactions,
  async readReplication(ask): Promise<SaidReplication> {
    const found = await readReplication(ask)
    return { role: found.role, facts: sayReplication(found), parts: sayParts(found), lagBytes: findLag(found) }
  },
  async readRemarks(ask: AskDatabase) {
    const [row = {}] = (await ask({ sql: serverSql })).rows
    return sayServer(row).filter((each) => each !== null)
  },
}

const serverSql = `
  select extract(epoch from now() - pg_postmaster_start_time())::int as up_seconds,
    extract(epoch from now() - pg_conf_load_time())::int as settings_seconds,
    (select max(age(datfrozenxid)) from pg_database) as age, current_setting('autovacuum_freeze_max_age')::bigint as freeze_max_age,
    (select string_agg(datname || ' ' || deadlocks, ', ') from pg_stat_database where deadlocks > 0) as deadlocks,
    (select sum(temp_bytes) from pg_stat_database) as temp_bytes`

const span = (seconds: unknown): string => formatSpan(Number(seconds) * 1_000)

function sayReplication({ role, standbys, slots, replica, receiver, holdsUp }: Replication): string[] {
  const kept = slots
    .filter(({ active }) => active === false)
    .map(
      ({ slot, type, keeps_bytes, wal_status }) =>
        `inactive ${type} slot ${slot} keeps ${formatSize(Number(keeps_bytes ?? 0))} of WAL${wal_status ? ` (${wal_status})` : ''}`,
    )
  if (role === 'primary') {
    const sent = standbys.map(
      ({ name, from, state, not_replayed_bytes }) =>
        `replica ${name} at ${from} is ${state}, ${formatSize(Number(not_replayed_bytes ?? 0))} behind`,
    )
    return [...kept, ...sent]
  }
  const { replay_paused, behind_seconds, received_not_replayed_bytes } = replica ?? {}
  const states = [
    replay_paused === true && 'its replay is paused',
    receiver
      ? `it receives from ${receiver.sender_host}:${receiver.sender_port} (${receiver.status})`
      : 'it receives no WAL: no WAL receiver runs',
    Number(received_not_replayed_bytes) > 0 &&
      `${formatSize(Number(received_not_replayed_bytes))} received and not replayed, ${behind_seconds ?? '?'} s behind`,
  ].filter((each) => typeof each === 'string')
  const [first] = holdsUp ?? []
  const held = first
    ? [
        `replay may wait for session ${first.pid} of ${first.user}, ${first.name}, ${first.state} since ${String(first.transaction_since).slice(11, 19)}`,
      ]
    : []
  return [states.join('; '), ...held, ...kept]
}

function sayServer({
  up_seconds,
  settings_seconds,
  age,
  freeze_max_age,
  deadlocks,
  temp_bytes,
}: SqlRow): (string | null)[] {
  const isNew = Number(up_seconds) < recentSeconds
  return [
    isNew ? `the server started ${span(up_seconds)} ago` : null,
    !isNew && Number(settings_seconds) < recentSeconds ? `settings were loaded ${span(settings_seconds)} ago` : null,
    Number(age) > Number(freeze_max_age)
      ? `the oldest database is ${age} transactions of age; autovacuum freezes from ${freeze_max_age}`
      : null,
    deadlocks ? `deadlocks since the counters began: ${deadlocks}` : null,
    Number(temp_bytes) > 1e8 ? `temporary files since the counters began: ${formatSize(Number(temp_bytes))}` : null,
  ]
}

/**
 * Returns the bytes that this replica has not replayed. For a primary, returns the bytes of the
 * replica that is furthest behind.
 */
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
      text: isPaused ? `replay is paused, ${behind} not replayed` : `replays, ${behind} behind the received WAL`,
      isIll: isPaused,
    },
    ...kept,
  ]
}
