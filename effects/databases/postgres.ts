import { toTimeSql } from '../../clients/databases/postgres.ts'
import type { DatabaseSession, SqlValue } from '../../clients/databases/server.ts'
import { slotStateSql } from '../../domain/database-rights.ts'
import type { DatabaseAct, SessionAct, SlotAct } from '../../domain/database-write.ts'
import { formatCount, formatMoment, formatSpan } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import type { Observation } from '../../domain/tool.ts'
import { redact } from '../../safety/redact.ts'
import { EffectRefused } from '../effect.ts'
import { sayOwner } from './owner.ts'
import type { DatabaseWriter, FoundTarget } from './write.ts'

/**
 * The four writes at PostgreSQL. Each write compares and acts in one statement, so that nothing can
 * change in between.
 */

type Row = Record<string, SqlValue>

const time = (column: string): string => toTimeSql(column, '.US')

/**
 * SQL for the time when the server started. Another server at the same address has another time.
 */
const startedSql = time('pg_postmaster_start_time()')

const maxBlocked = 6

/** Reads a session and the sessions that wait for it, directly or through others. */
const sessionSql = `
  with recursive edges as materialized (
    select pid, unnest(pg_blocking_pids(pid)) as by from pg_stat_activity where wait_event_type = 'Lock'),
  below as (select pid from edges where by = $1 union select e.pid from edges e join below on e.by = below.pid)
  select a.pid, a.usename, a.datname, a.application_name, host(a.client_addr) as client, a.state, a.backend_type,
    ${startedSql} as started, ${time('a.backend_start')} as began, ${time('a.xact_start')} as transaction_began, ${time('a.query_start')} as query_began,
    extract(epoch from now() - a.state_change)::int as state_seconds, extract(epoch from now() - a.xact_start)::int as transaction_seconds,
    r.rolsuper as is_superuser, a.usename = current_user or a.application_name = 'nightshift' as is_own,
    (select count(*) from below) as blocks,
    (select json_agg(json_build_object('pid', w.pid, 'who', coalesce(w.usename, '?') || coalesce(', ' || nullif(w.application_name, ''), ''),
        'by', (select json_agg(e.by) from edges e where e.pid = w.pid)) order by w.xact_start)::text
      from (select * from pg_stat_activity where pid in (select pid from below) order by xact_start limit ${maxBlocked}) w) as blocked
  from pg_stat_activity a left join pg_roles r on r.oid = a.usesysid
  where a.pid = $1 and ${time('a.backend_start')} = $2`

/**
 * Reads a session as the server shows it now. Throws EffectRefused if Nightshift may not touch the
 * session.
 */
async function findSession(session: DatabaseSession, act: SessionAct): Promise<FoundTarget> {
  const { rows } = await session.read({ sql: sessionSql, values: [act.pid, act.began] })
  const [row] = rows
  if (!row) throw gone(act)
  refuseUntouchable(row)
  const {
    started = null,
    pid = null,
    began = null,
    state = null,
    usename,
    datname,
    application_name,
    client,
    blocks,
    blocked,
  } = row
  const isCancel = act.write === 'cancel_query'
  if (isCancel && state !== 'active')
    throw new EffectRefused(
      'conflict',
      'NOTHING_TO_CHANGE',
      `Session ${pid} runs no query: it is ${state}. terminate_session ends the session.`,
    )
  const who = redact(
    `${usename ?? '?'}${datname ? `@${datname}` : ''}${application_name ? `, ${application_name}` : ''}${client ? ` from ${client}` : ''}`,
  )
  return {
    // Compares when the query began, because a later query is another query. Before a session is
    // ended, its transaction is compared, so that an idle session in one transaction stays the
    // same.
    compared: {
      started,
      pid,
      began,
      state,
      of: isCancel ? (row.query_began ?? null) : (row.transaction_began ?? null),
    },
    summary: `${isCancel ? 'Cancel the query of' : 'End'} session ${pid} of ${who}`,
    told: [
      `session ${pid} of ${who}, since ${formatMoment(String(began), 'utc')}`,
      `the session is ${state ?? 'of an unknown state'} for ${formatSpan(Number(row.state_seconds ?? 0) * 1_000)}${row.transaction_seconds === null ? '' : `, its transaction is open for ${formatSpan(Number(row.transaction_seconds) * 1_000)}`}`,
      ...sayBlocked(Number(pid), Number(blocks), String(blocked ?? '[]')),
      isCancel
        ? 'the query ends with an error; the session stays, and a transaction that it is in fails'
        : 'the transaction is rolled back, and the client sees the connection end',
      'undo: none; the changes of that transaction are lost',
    ],
    untried: [
      isCancel
        ? 'It is not known whether the application sends the query again.'
        : 'It is not known whether the application connects again.',
    ],
  }
}

/**
 * Lists the sessions that wait, each below the session for which it waits, as far as the names of
 * sessions are known.
 */
function sayBlocked(root: number, count: number, blocked: string): string[] {
  if (count === 0) return ['no session waits for it']
  const waiting = JSON.parse(blocked) as { pid: number; who: string; by: number[] }[]
  const lines: string[] = []
  const seen = new Set<number>()
  const add = (pid: number, depth: number) => {
    for (const each of waiting) {
      if (seen.has(each.pid) || !each.by.includes(pid)) continue
      seen.add(each.pid)
      lines.push(`${'· '.repeat(depth)}${each.pid} ${redact(each.who)}`)
      add(each.pid, depth + 1)
    }
  }
  add(root, 1)
  // Lists sessions that wait for a session without a known name at the first level.
  for (const { pid, who } of waiting) if (!seen.has(pid)) lines.push(`· ${pid} ${redact(who)}`)
  const more = count > waiting.length ? [`· ${count - waiting.length} more`] : []
  return [`${formatCount(count, 'session')} waiting for it:`, ...lines, ...more]
}

function refuseUntouchable({ pid, backend_type, is_superuser, is_own, usename }: Row): void {
  const refuse = (why: string) =>
    new EffectRefused('conflict', 'NOT_TOUCHED', `Nightshift does not act on session ${pid}: ${why}.`)
  if (backend_type !== 'client backend') throw refuse(`the session is a ${backend_type}, which the server runs itself`)
  if (is_superuser === true) throw refuse(`${usename} is a superuser`)
  if (is_own === true) throw refuse('the session belongs to Nightshift')
}

const gone = (act: SessionAct): EffectRefused =>
  new EffectRefused(
    'conflict',
    'NOTHING_TO_CHANGE',
    `There is no session ${act.pid} that began at ${act.began}: it has ended.`,
  )

/** Compares directly before the signal. A view would join names of users and databases first. */
const actSql = (call: string, moment: string): string => `
  select ${call}(a.pid) as done from pg_stat_get_activity($1) a
  where ${time('a.backend_start')} = $2 and a.state is not distinct from $3 and ${time(moment)} is not distinct from $4
    and a.backend_type = 'client backend' and ${startedSql} = $5`

const slotSql = `
  select ${startedSql} as started, slot_name as slot, slot_type as type, plugin, database, active, active_pid, restart_lsn::text as kept_from,
    ${slotStateSql} as seen,
    pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, restart_lsn)::bigint as keeps_bytes,
    age(coalesce(xmin, catalog_xmin)) as keeps_transactions
  from pg_replication_slots s where slot_name = $1`

async function findSlot(session: DatabaseSession, { slot }: SlotAct): Promise<FoundTarget> {
  const [row] = (await session.read({ sql: slotSql, values: [slot] })).rows
  if (!row) throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', `There is no replication slot ${slot}.`)
  if (row.active === true) {
    const detail = `The slot ${slot} is in use by session ${row.active_pid}, which would lose its position. Only an inactive slot is dropped.`
    throw new EffectRefused('conflict', 'SLOT_ACTIVE', detail)
  }
  const { started = null, seen = null, type = null, plugin, database, kept_from, keeps_bytes, keeps_transactions } = row
  return {
    compared: { started, slot, active: false, seen },
    summary: `Drop the inactive ${type} replication slot ${slot}`,
    told: [
      `${type} slot ${slot}${plugin ? ` (${plugin}, database ${database})` : ''}, inactive`,
      `the slot keeps ${formatSize(Number(keeps_bytes ?? 0))} of WAL from ${kept_from ?? 'nowhere'}${keeps_transactions === null ? '' : `, and prevents vacuum from cleaning up ${keeps_transactions} transactions`}`,
      'the replica or consumer that used it must be rebuilt once the server removes WAL that it has not read',
      'undo: none; a new slot begins at the current position of the server',
    ],
    untried: ['The server does not know who used it, or whether it comes back.'],
  }
}

const replaySql = `
  select ${startedSql} as started, pg_is_in_recovery() as replica, case when pg_is_in_recovery() then pg_last_wal_replay_lsn()::text end as replayed,
    (select string_agg(name, ', ') from pg_settings where name ~ '^recovery_target(_name|_time|_xid|_lsn)?$' and setting <> '') as target, case when pg_is_in_recovery() then pg_is_wal_replay_paused() end as paused,
    case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::bigint end as behind_bytes`

async function findReplay(session: DatabaseSession): Promise<FoundTarget> {
  const [row = {}] = (await session.read({ sql: replaySql })).rows
  if (row.replica !== true)
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', 'The server is a primary: it replays nothing.')
  if (row.paused !== true)
    throw new EffectRefused(
      'conflict',
      'NOTHING_TO_CHANGE',
      'Replay is not paused. If the replica receives nothing, the fault is at its primary or in its files.',
    )
  if (row.target !== null)
    throw new EffectRefused(
      'conflict',
      'NOT_TOUCHED',
      `Replay is not resumed: the server recovers to a target (${row.target}), and resuming may make it a primary.`,
    )
  return {
    // Compares the position, because a replay that was resumed and paused again is at another
    // position.
    compared: { started: row.started ?? null, paused: true, replayed: row.replayed ?? null },
    summary: 'Resume the replay of the replica',
    told: [
      `the replica's replay is paused; ${formatSize(Number(row.behind_bytes ?? 0))} are received but not replayed`,
      'replay would continue from there, and may cancel queries on the replica',
      'undo: none; pg_wal_replay_pause() pauses it at its position at that time',
    ],
    untried: [
      'The server does not know who paused it, or why.',
      'If the server paused replay because a setting is lower than on its primary, resuming stops the server. The server logs the reason.',
    ],
  }
}

const dropSql = `select nightshift.drop_inactive_slot($1, $2) as done where ${startedSql} = $3`

/**
 * Resumes the replay. The `case` calls no function for replicas if the server is no longer a
 * replica.
 */
const resumeSql = `
  select pg_wal_replay_resume()::text is not null as done
  where case when pg_is_in_recovery() then pg_is_wal_replay_paused() and pg_last_wal_replay_lsn() = $1::pg_lsn else false end
    and ${startedSql} = $2`

async function find(session: DatabaseSession, act: DatabaseAct): Promise<FoundTarget> {
  const found =
    act.write === 'start_replica'
      ? await findReplay(session)
      : act.write === 'drop_replication_slot'
        ? await findSlot(session, act)
        : await findSession(session, act)
  const owner = await sayOwner(session, act)
  return owner === null ? found : { ...found, told: [owner, ...found.told] }
}

/**
 * Sends one statement that first compares the state with the state at the decision. Returns true if
 * the statement did something.
 */
async function send(session: DatabaseSession, act: DatabaseAct, { compared }: FoundTarget): Promise<boolean> {
  const ask = async (sql: string, values: SqlValue[]) => (await session.write({ sql, values })).rows[0]?.done === true
  const { started = null, state = null, of = null, seen = null, replayed = null } = compared
  switch (act.write) {
    case 'cancel_query':
      return await ask(actSql('pg_cancel_backend', 'a.query_start'), [act.pid, act.began, state, of, started])
    case 'terminate_session':
      return await ask(actSql('pg_terminate_backend', 'a.xact_start'), [act.pid, act.began, state, of, started])
    case 'drop_replication_slot':
      return await ask(dropSql, [act.slot, seen, started])
    case 'start_replica':
      return await ask(resumeSql, [replayed, started])
  }
}

async function observe(
  session: DatabaseSession,
  act: DatabaseAct,
  compared: FoundTarget['compared'] | null,
): Promise<Observation> {
  const [{ started = null } = {}] = (await session.read({ sql: `select ${startedSql} as started` })).rows
  if (compared?.started && compared.started !== started)
    return {
      holds: null,
      observed: `the server that answers started at ${formatMoment(String(started), 'utc')}, the server of the write started at ${formatMoment(String(compared.started), 'utc')}: it was restarted, or is another server`,
    }
  if (act.write === 'drop_replication_slot') {
    const there = (await session.read({ sql: slotSql, values: [act.slot] })).rows.length > 0
    return {
      holds: !there,
      observed: there ? `the slot ${act.slot} is still there` : `there is no slot ${act.slot} any more`,
    }
  }
  if (act.write === 'start_replica') {
    const [row = {}] = (await session.read({ sql: replaySql })).rows
    const behind = formatSize(Number(row.behind_bytes ?? 0))
    return {
      holds: row.paused === false,
      observed: row.paused ? 'replay is still paused' : `replay continues, ${behind} behind the received WAL`,
    }
  }
  const [row] = (await session.read({ sql: sessionSql, values: [act.pid, act.began] })).rows
  if (!row) return { holds: true, observed: `session ${act.pid} has ended` }
  if (act.write === 'terminate_session')
    return { holds: false, observed: `session ${act.pid} is still there, ${row.state}` }
  const isOther = row.state !== 'active' || (compared !== null && row.query_began !== compared.of)
  return {
    holds: isOther,
    observed: isOther
      ? `the query of session ${act.pid} has ended; it is ${row.state}`
      : `the query of session ${act.pid} still runs`,
  }
}

export const postgresWriter: DatabaseWriter = { find, send, observe }
