import { rowWaitsSql } from '../../../clients/databases/mysql-views.ts'
import type { ServerFacts } from '../../../clients/databases/server.ts'
import { type LockNode, toTrees } from '../blocking.ts'
import type { AskDatabase } from '../connect.ts'
import type { BlockingTree } from '../reader.ts'
import { describeSession, type SqlRow } from '../sessions.ts'
import { sessionColumns, sessionTables, toSession } from './sessions.ts'

/**
 * Sessions that wait for a lock, and the sessions that block them. InnoDB lists waits for rows; the
 * server lists waits for the definition of a table.
 */

const maxPairs = 300

/** Locks on whole objects, as MySQL lists them. */
const definitionsSql = `
  select p.processlist_id as waiting, pending.lock_type as wanted, h.processlist_id as blocker, held.lock_type as has, held.lock_status as status,
    concat(pending.lock_type, ' on ', concat_ws('.', pending.object_schema, pending.object_name)) as wants
  from performance_schema.metadata_locks pending
  join performance_schema.threads p on p.thread_id = pending.owner_thread_id
  join performance_schema.metadata_locks held on held.object_type = pending.object_type and held.object_schema <=> pending.object_schema
    and held.object_name <=> pending.object_name and held.owner_thread_id <> pending.owner_thread_id
  join performance_schema.threads h on h.thread_id = held.owner_thread_id
  where pending.lock_status = 'PENDING' and h.processlist_id is not null limit ${maxPairs}`

const isExclusive = (type: unknown): boolean => /EXCLUSIVE|NO_WRITE|NO_READ_WRITE|UPGRADABLE/.test(String(type))

/**
 * Finds the sessions that block the lock of an object: holders, if their lock or the requested lock
 * is exclusive. Without such a holder, waiters for an exclusive lock, which block all later
 * requests.
 */
function findInTheWay(rows: readonly SqlRow[]): SqlRow[] {
  const granted = rows.filter(
    ({ status, has, wanted }) => status === 'GRANTED' && (isExclusive(has) || isExclusive(wanted)),
  )
  if (granted.length > 0) return granted
  return rows.filter(({ status, has }) => status === 'PENDING' && isExclusive(has))
}

/**
 * Tests whether MariaDB's plugin lists holders of locks. A table name in the waiting statement then
 * tells which holder blocks it.
 */
const pluginSql = `select plugin_name from information_schema.plugins where plugin_name = 'METADATA_LOCK_INFO' and plugin_status = 'ACTIVE'`
const heldSql = `select thread_id as blocker, lock_mode as has, table_schema as db, table_name as name
  from information_schema.metadata_lock_info where lock_type = 'Table metadata lock' limit 2000`

type Pair = { waiting: number; blocker: number; wants: string | null; waitsSince: string | null }

const toPair = ({ waiting, blocker, wants, waits_since }: SqlRow): Pair => ({
  waiting: Number(waiting),
  blocker: Number(blocker),
  wants: wants === null || wants === undefined ? null : String(wants),
  waitsSince: waits_since === null || waits_since === undefined ? null : String(waits_since),
})

async function readDefinitionWaits(ask: AskDatabase, server: ServerFacts, waiting: readonly SqlRow[]): Promise<Pair[]> {
  if (waiting.length === 0) return []
  if (server.product === 'MySQL') {
    const { rows } = await ask({ sql: definitionsSql })
    const byWaiting = Map.groupBy(rows, (row) => Number(row.waiting))
    return [...byWaiting.values()].flatMap((each) => findInTheWay(each).map(toPair))
  }
  if ((await ask({ sql: pluginSql })).rows.length === 0) return []
  const { rows } = await ask({ sql: heldSql })
  return waiting.flatMap((row) =>
    rows
      .filter(({ blocker, name }) => blocker !== row.pid && String(row.query).includes(String(name)))
      .map(({ blocker, has, db, name }) =>
        toPair({ waiting: row.pid ?? null, blocker: blocker ?? null, wants: `${db}.${name}, held as ${has}` }),
      ),
  )
}

const sessionsSql = (server: ServerFacts, ids: readonly number[]): string =>
  `select ${sessionColumns(server)} from ${sessionTables(server)}
   where p.state like 'Waiting for %lock%'${ids.length > 0 ? ` or p.id in (${ids.join(', ')})` : ''} limit ${maxPairs}`

export async function readBlocking(ask: AskDatabase): Promise<BlockingTree> {
  const { server } = await ask({ sql: 'select 1' })
  const rowWaits = (await ask({ sql: rowWaitsSql(server) })).rows.map(toPair)
  const idsOf = (pairs: readonly Pair[]) => [...new Set(pairs.flatMap(({ waiting, blocker }) => [waiting, blocker]))]
  const first = (await ask({ sql: sessionsSql(server, idsOf(rowWaits)) })).rows
  const isExplained = new Set(rowWaits.map(({ waiting }) => waiting))
  const others = first.filter(
    (row) => / waits for a lock$/.test(toSession(row).state) && !isExplained.has(Number(row.pid)),
  )
  const definitionWaits = await readDefinitionWaits(ask, server, others)
  const pairs = [...rowWaits, ...definitionWaits]
  const { rows } = definitionWaits.length > 0 ? await ask({ sql: sessionsSql(server, idsOf(pairs)) }) : { rows: first }
  const nodes = rows.map((row) => toNode(row, pairs))
  const isWaitedFor = new Set(pairs.map(({ blocker }) => blocker))
  const isKnown = (pid: number) => isWaitedFor.has(pid) || pairs.some(({ waiting }) => waiting === pid)
  return toTrees(
    nodes.filter(({ session }) => isKnown(session.pid)),
    {
      prepared: isWaitedFor.has(0)
        ? (await ask({ sql: 'xa recover' })).rows.map(({ data }) => ({ gid: data ?? null }))
        : [],
      unexplained: nodes
        .filter(({ session }) => session.state.endsWith('waits for a lock') && !isKnown(session.pid))
        .map(({ session }) => describeSession(session)),
    },
  )
}

function toNode(row: SqlRow, pairs: readonly Pair[]): LockNode {
  const own = pairs.filter(({ waiting }) => waiting === Number(row.pid))
  return {
    session: toSession(row),
    blockers: [...new Set(own.map(({ blocker }) => blocker))],
    wants: own[0]?.wants ?? null,
    waitsSince: own[0]?.waitsSince ?? null,
  }
}
