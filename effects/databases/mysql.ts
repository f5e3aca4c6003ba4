import { type ReplicaChannel, readChannels } from '../../clients/databases/mysql-replicas.ts'
import { beganSql, processlistOf, rowWaitsSql, toTimeSql } from '../../clients/databases/mysql-views.ts'
import type { DatabaseSession, ServerFacts, SqlValue } from '../../clients/databases/server.ts'
import type { DatabaseAct, SessionAct } from '../../domain/database-write.ts'
import { formatCount, formatMoment, formatSpan } from '../../domain/format.ts'
import { formatSize } from '../../domain/format-approval.ts'
import type { Observation } from '../../domain/tool.ts'
import { EffectRefused } from '../effect.ts'
import { sayCluster } from './owner.ts'
import type { DatabaseWriter, FoundTarget } from './write.ts'

/**
 * Three of the four writes, at MySQL and MariaDB. MariaDB compares and acts in one block. MySQL has
 * no blocks outside of a procedure, so it compares directly before it acts. MySQL never gives a
 * session's number a second time.
 */

type Row = Record<string, SqlValue>

const maxBlocked = 6

/**
 * SQL that identifies a session's current or last query: any later query has another number.
 * MariaDB counts queries over the server, MySQL over a session. InnoDB's list of transactions is
 * unsuitable: a read of that list gets a cached copy, which MySQL renews only after 0.1 s without a
 * read (https://dev.mysql.com/doc/refman/8.0/en/innodb-information-schema-internal-data.html).
 */
const queryIdSql = ({ product }: ServerFacts): string =>
  product === 'MariaDB'
    ? 'p.query_id'
    : `(select e.event_id from performance_schema.threads h join performance_schema.events_statements_current e on e.thread_id = h.thread_id
        where h.processlist_id = p.id and e.nesting_event_level = 0 order by e.event_id desc limit 1)`

/** Columns by which a session is compared with its state at the decision. */
const comparedSql = (server: ServerFacts): string => `p.id as pid, ${beganSql(server)} as began, p.user, p.host,
  coalesce(p.command = 'Sleep', false) as idle, ${queryIdSql(server)} as query_id`

const sessionSql = (server: ServerFacts): string => `
  select ${comparedSql(server)}, p.db, p.command, p.time as state_seconds,
    ${toTimeSql('t.trx_started')} as transaction_began, timestampdiff(second, t.trx_started, now()) as transaction_seconds,
    t.trx_rows_modified as changed_rows,
    exists (select * from mysql.user u where u.user = p.user and u.super_priv = 'Y') as is_superuser,
    p.user in (substring_index(current_user(), '@', 1), ?) as is_own
  from ${processlistOf(server)} p left join information_schema.innodb_trx t on t.trx_mysql_thread_id = p.id
  where p.id = ? and ${beganSql(server)} = ?`

/** Matches the server's own threads, and threads that read its binary log. */
const ownThreads = /^(?:Binlog Dump|Daemon|Slave_|Connect$)/

function refuseUntouchable({ pid, command, user, is_superuser, is_own }: Row): void {
  const refuse = (why: string) =>
    new EffectRefused('conflict', 'NOT_TOUCHED', `Nightshift does not act on session ${pid}: ${why}.`)
  if (user === 'system user' || user === 'event_scheduler' || ownThreads.test(String(command)))
    throw refuse(`the session is a ${String(command).toLowerCase()}, which replication or the server runs itself`)
  if (Number(is_superuser) === 1) throw refuse(`${user} is a superuser`)
  if (Number(is_own) === 1) throw refuse('the session belongs to Nightshift')
}

const gone = (act: SessionAct): EffectRefused =>
  new EffectRefused(
    'conflict',
    'NOTHING_TO_CHANGE',
    `There is no session ${act.pid} that began at ${act.began}: it has ended.`,
  )

/**
 * Reads a session as the server shows it now. Throws EffectRefused if Nightshift may not touch the
 * session.
 */
async function findSession(session: DatabaseSession, act: SessionAct, reader: string | null): Promise<FoundTarget> {
  const { server } = session
  const [row] = (await session.read({ sql: sessionSql(server), values: [reader ?? '', act.pid, act.began] })).rows
  if (!row) throw gone(act)
  refuseUntouchable(row)
  const { pid = null, began = null, user, host, db, idle, query_id = null } = row
  if (query_id === null)
    throw new EffectRefused(
      'conflict',
      'CANNOT_COMPARE',
      `Nightshift cannot distinguish the query of session ${pid} from its next query: ${server.product} needs performance_schema for this check.`,
    )
  const isCancel = act.write === 'cancel_query'
  const isIdle = Number(idle) === 1
  if (isCancel && isIdle)
    throw new EffectRefused(
      'conflict',
      'NOTHING_TO_CHANGE',
      `Session ${pid} runs no query: it is idle. terminate_session ends the session.`,
    )
  const pairs = (await session.read({ sql: rowWaitsSql(server) })).rows
  const below = pairs.filter(({ blocker }) => blocker === pid)
  const who = `${user}${db ? `@${db}` : ''} from ${host}`
  const isOpen = row.transaction_seconds !== null
  return {
    compared: {
      pid,
      began,
      from: `${user}@${host}`,
      idle: isIdle,
      of: String(query_id),
    },
    summary: `${isCancel ? 'Cancel the query of' : 'End'} session ${pid} of ${who}`,
    told: [
      `session ${pid} of ${who}, on the server that has run since ${sayBegan(began)}`,
      `the session is ${isIdle ? 'idle' : 'at work'} for ${formatSpan(Number(row.state_seconds) * 1_000)}${isOpen ? `, its transaction is open for ${formatSpan(Number(row.transaction_seconds) * 1_000)} and changed ${formatCount(Number(row.changed_rows), 'row')}` : ''}`,
      sayBlocked(below.map(({ waiting, wants }) => `${waiting} for ${wants}`)),
      isCancel
        ? 'the query ends with an error; the session and its transaction stay'
        : 'the transaction is rolled back, and the client sees the connection end',
      isCancel ? 'undo: none' : 'undo: none; the changes of that transaction are lost',
    ],
    untried: [
      isCancel
        ? 'It is not known whether the application sends the query again.'
        : 'It is not known whether the application connects again.',
    ],
  }
}

function sayBlocked(names: readonly string[]): string {
  if (names.length === 0) return 'no session that waits for it is visible'
  const more = names.length > maxBlocked ? `; ${names.length - maxBlocked} more` : ''
  return `${formatCount(names.length, 'session')} waiting for it: ${names.slice(0, maxBlocked).join('; ')}${more}`
}

/**
 * Numbers of errors that a retry may fix. After any other error the applier fails again at the same
 * place.
 */
const passing = new Set([0, 1040, 1158, 1159, 1160, 1161, 1205, 1213, 2003, 2006, 2013])

async function findReplica(session: DatabaseSession): Promise<FoundTarget> {
  const channels = await readChannels(session.read, session.server)
  const began = await readBegan(session)
  const refuse = (code: string, detail: string) => new EffectRefused('conflict', code, detail)
  const [channel] = channels
  if (!channel) throw refuse('NOTHING_TO_CHANGE', 'The server replicates from no other server: it is a primary.')
  if (channels.length > 1)
    throw refuse(
      'SEVERAL_CHANNELS',
      `The server has ${channels.length} replication connections. A person must choose one.`,
    )
  const { receiver, applier, receiverError, applierError, from, position, waitsBytes } = channel
  if (receiver !== 'No' && applier === 'Yes')
    throw refuse('NOTHING_TO_CHANGE', 'The replica runs: its receiver and its applier were not stopped.')
  const lasting = [applierError, receiverError].find((error) => error && !passing.has(error.number))
  if (lasting)
    throw refuse(
      'NOT_CURED_BY_START',
      `The replica stopped at ${position} with ${lasting.text}and would stop there again. A person must repair its data first.`,
    )
  return {
    compared: toCompared(channel, began),
    summary: 'Start the replica',
    told: [
      `the replica of ${from}: its receiver ${receiver === 'No' ? 'is stopped' : 'runs'}, its applier ${applier === 'No' ? 'is stopped' : 'runs'}, ${applierError ? applierError.text : 'without an error'}`,
      `the replica is at ${position}; ${waitsBytes === 0 ? 'nothing' : formatSize(waitsBytes)} is received but not applied`,
      'replication would continue from there, and read the missing events from the primary',
      'undo: none; STOP REPLICA stops it at its position at that time',
    ],
    untried: ['The server does not know who stopped it, or why.'],
  }
}

/** Formats `after 2026-11-21T01:46:02Z` for people; leaves any other text unchanged. */
function sayBegan(began: SqlValue): string {
  const time = String(began).replace(/^after /, '')
  return Number.isNaN(Date.parse(time)) ? time : formatMoment(time, 'utc')
}

/** Reads when the server started. Another server at the same address has another time. */
const readBegan = async ({ read, server }: DatabaseSession): Promise<SqlValue> =>
  (await read({ sql: `select ${beganSql(server)} as began` })).rows[0]?.began ?? null

const toCompared = ({ from, receiver, applier, applierError, position }: ReplicaChannel, began: SqlValue) => ({
  began,
  from,
  receiver,
  applier,
  error: applierError?.number ?? 0,
  position,
})

const noSlots = () => new EffectRefused('conflict', 'NOTHING_TO_CHANGE', 'MySQL and MariaDB have no replication slots.')

async function find(session: DatabaseSession, act: DatabaseAct, reader: string | null): Promise<FoundTarget> {
  if (act.write === 'drop_replication_slot') throw noSlots()
  const found = act.write === 'start_replica' ? await findReplica(session) : await findSession(session, act, reader)
  const owner = await sayCluster(session)
  return owner === null ? found : { ...found, told: [owner, ...found.told] }
}

/** Builds a query that counts the session only if it is still as `compared` records. */
function sameSql(server: ServerFacts, compared: FoundTarget['compared']): { sql: string; values: SqlValue[] } {
  const sql = `select count(*) from (select ${comparedSql(server)} from ${processlistOf(server)} p where p.id = ?) s
    where s.began = ? and concat(s.user, '@', s.host) = ? and s.idle = ? and s.query_id = ?`
  const { pid = null, began = null, from = null, idle = null, of: mark = null } = compared
  return { sql, values: [pid, began, from, idle === true ? 1 : 0, mark] }
}

const killSql = ({ product }: ServerFacts, { write, pid }: SessionAct, compared: FoundTarget['compared']): string => {
  if (write === 'terminate_session') return `kill connection ${Number(pid)}`
  // Kills the query by number at MariaDB, where the number is unique, so that another query of the
  // session is never hit.
  return product === 'MariaDB' ? `kill query id ${Number(compared.of)}` : `kill query ${Number(pid)}`
}

async function send(session: DatabaseSession, act: DatabaseAct, { compared }: FoundTarget): Promise<boolean> {
  if (act.write === 'drop_replication_slot') throw noSlots()
  if (act.write === 'start_replica') {
    const channels = await readChannels(session.read, session.server)
    const [channel] = channels
    const began = await readBegan(session)
    if (!channel || JSON.stringify(toCompared(channel, began)) !== JSON.stringify(compared)) return false
    await session.write({ sql: startSql(session.server) })
    return true
  }
  const { sql, values } = sameSql(session.server, compared)
  const kill = killSql(session.server, act, compared)
  if (session.server.product === 'MariaDB') {
    const block = `begin not atomic declare found int; set found = (${sql}); if found = 1 then ${kill}; end if; select found as done; end`
    return Number((await session.write({ sql: block, values })).rows[0]?.done) === 1
  }
  const [row = {}] = (await session.write({ sql, values })).rows
  if (Number(Object.values(row)[0]) !== 1) return false
  await session.write({ sql: kill })
  return true
}

const startSql = ({ product, number }: ServerFacts): string =>
  product === 'MySQL' && number >= 80_022 ? 'start replica' : 'start slave'

async function observe(
  session: DatabaseSession,
  act: DatabaseAct,
  compared: FoundTarget['compared'] | null,
): Promise<Observation> {
  if (act.write === 'drop_replication_slot') throw noSlots()
  const [began, decided] = [await readBegan(session), compared?.began ?? ('began' in act ? act.began : null)]
  if (decided !== null && began !== decided)
    return {
      holds: null,
      observed: `the server that answers started at ${sayBegan(began)}, the server of the write started at ${sayBegan(decided)}: it was restarted, or is another server`,
    }
  if (act.write === 'start_replica') {
    const [channel] = await readChannels(session.read, session.server)
    const runs = channel?.receiver === 'Yes' && channel.applier === 'Yes'
    return { holds: runs, observed: channel ? sayRunning(channel) : 'the server replicates from nobody' }
  }
  const { server } = session
  const [row] = (await session.read({ sql: sessionSql(server), values: ['', act.pid, act.began] })).rows
  if (!row) return { holds: true, observed: `session ${act.pid} has ended` }
  if (act.write === 'terminate_session')
    return {
      holds: false,
      observed: `session ${act.pid} is still there, ${row.command === 'Killed' ? 'being ended' : String(row.command).toLowerCase()}`,
    }
  const isOther = Number(row.idle) === 1 || (compared !== null && String(row.query_id ?? '') !== compared.of)
  return {
    holds: isOther,
    observed: isOther ? `the query of session ${act.pid} has ended` : `the query of session ${act.pid} still runs`,
  }
}

function sayRunning({ receiver, applier, applierError, receiverError, behindSeconds }: ReplicaChannel): string {
  const error = applierError ?? receiverError
  const behind = behindSeconds === null ? '' : `, ${behindSeconds} s behind`
  return `its receiver ${receiver === 'Yes' ? 'runs' : 'does not run'}, its applier ${applier === 'Yes' ? 'runs' : 'does not run'}${error ? `: ${error.text}` : behind}`
}

export const mysqlWriter: DatabaseWriter = { find, send, observe }
