import { isNearlyFull } from '../../domain/connection-limit.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import { cutText } from '../kind.ts'
import { readBlocking } from './blocking.ts'
import type { AskDatabase } from './connect.ts'
import { readConnections } from './connections.ts'
import { readReplication } from './replication.ts'
import type { ShownSession, SqlRow } from './sessions.ts'
import { readTransactions } from './transactions.ts'

/** Lines for the first turn of an investigation: each says one remarkable thing about the server now. 1 kB at most. */

const maxFacts = 8
const maxFactCharacters = 240
const maxBytes = 1_000
/** A transaction is long after this, and what happened within the last hour is said as a change. */
const longSeconds = 60
const recentSeconds = 3_600

const serverSql = `
  select extract(epoch from now() - pg_postmaster_start_time())::int as up_seconds,
    extract(epoch from now() - pg_conf_load_time())::int as settings_seconds,
    (select max(age(datfrozenxid)) from pg_database) as age, current_setting('autovacuum_freeze_max_age')::bigint as freeze_max_age,
    (select string_agg(datname || ' ' || deadlocks, ', ') from pg_stat_database where deadlocks > 0) as deadlocks,
    (select sum(temp_bytes) from pg_stat_database) as temp_bytes`

export async function readFacts(ask: AskDatabase): Promise<{ facts: string[] }> {
  const blocking = await readBlocking(ask)
  const connections = await readConnections(ask)
  const replication = await readReplication(ask)
  const { long, prepared } = await readTransactions(ask)
  const { rows, server } = await ask({ sql: serverSql })
  // Sessions of a blocking tree stand in it already.
  const isTold = ({ pid, state }: ShownSession) =>
    state.endsWith('waits for a lock') || blocking.roots.some(({ root }) => root?.pid === pid)
  const isLong = (each: (typeof long)[number]) => each.openSeconds >= longSeconds && !isTold(each)
  const facts = [
    `${server.product} ${server.version}, ${replication.role}`,
    ...blocking.roots.map(sayRoot),
    sayConnections(connections),
    ...sayReplication(replication),
    ...long.filter(isLong).slice(0, 2).map(sayLong),
    ...prepared
      .slice(0, 1)
      .map((each) => `prepared transaction ${each.gid} of ${each.owner} is open for ${span(each.open_seconds)}`),
    ...sayServer(rows[0] ?? {}),
  ]
  return { facts: fitFacts(facts.filter((each) => each !== null)) }
}

/** Whole facts, the first ones, within the bound. */
function fitFacts(facts: readonly string[]): string[] {
  const kept: string[] = []
  for (const fact of facts.slice(0, maxFacts)) {
    const cut = cutText(fact, maxFactCharacters)
    if (Buffer.byteLength(JSON.stringify([...kept, cut])) > maxBytes) break
    kept.push(cut)
  }
  return kept
}

const span = (seconds: unknown): string => formatSpan(Number(seconds) * 1_000)

const nameSession = ({ pid, began, user, database, application, state }: ShownSession): string =>
  `session ${pid} (began ${began}) of ${user ?? '?'}${database ? `@${database}` : ''}${application ? `, ${application}` : ''}, ${state}`

function sayRoot({ root, blocks }: Awaited<ReturnType<typeof readBlocking>>['roots'][number]): string {
  const who = root
    ? `${nameSession(root)} since ${root.stateSince?.slice(11, 19) ?? '?'}: ${root.statement}`
    : 'a prepared transaction'
  return `${formatCount(blocks, 'session')} waiting for locks below ${who}`
}

function sayConnections(connections: Awaited<ReturnType<typeof readConnections>>): string | null {
  if (!isNearlyFull(connections)) return null
  const { used, max, reserved, holders } = connections
  const [first] = holders
  const most = first
    ? `; ${first.count} of them ${first.application ?? first.user} on ${first.database}, ${first.state}`
    : ''
  return `${used} of ${max} connections in use (${reserved} for superusers)${most}`
}

function sayReplication({
  role,
  standbys,
  slots,
  replica,
  receiver,
  holdsUp,
}: Awaited<ReturnType<typeof readReplication>>): string[] {
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
      : 'it receives nothing: no WAL receiver runs',
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

const sayLong = ({
  openSeconds,
  holdsBack,
  ...session
}: ShownSession & { openSeconds: number; holdsBack: number | null }): string =>
  `transaction open for ${span(openSeconds)}: ${nameSession(session)}${holdsBack ? `, holds vacuum back by ${holdsBack} transactions` : ''}: ${session.statement}`

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
