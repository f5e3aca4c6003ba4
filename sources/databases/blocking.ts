import { toTimeSql } from '../../clients/databases/postgres.ts'
import { formatCount } from '../../domain/format.ts'
import { fitSummary } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import type { Question } from './question.ts'
import type { BlockingTree, ServerReader } from './reader.ts'
import { describeSession, type ShownSession, type SqlRow, sessionColumns, toSession } from './sessions.ts'

/**
 * Sessions that wait for a lock, as trees. A tree's root holds the lock and waits for no other
 * session.
 */

const maxSessions = 300

/**
 * Calls `pg_blocking_pids` only for sessions that wait, because each call stops the lock table for
 * a moment.
 */
const postgresSql = `
  with waiting as materialized (
    select pid, pg_blocking_pids(pid) as blockers from pg_stat_activity where wait_event_type = 'Lock' limit ${maxSessions})
  select ${sessionColumns}, array_to_string(w.blockers, ',') as blockers,
    (select l.mode || ' on ' || case
        when l.relation is null then l.locktype
        when l.database = (select oid from pg_database where datname = current_database()) then l.relation::regclass::text
        else 'a table of another database' end
      from pg_locks l where l.pid = a.pid and not l.granted limit 1) as wants,
    ${toTimeSql('(select min(l.waitstart) from pg_locks l where l.pid = a.pid and not l.granted)')} as waits_since
  from pg_stat_activity a left join waiting w using (pid)
  where w.pid is not null or a.pid in (select unnest(blockers) from waiting)
  order by a.xact_start nulls last limit ${maxSessions}`

/** Selects no times of waiting: PostgreSQL before version 14 does not record them. */
const withoutWaitstart = postgresSql.replace(
  /\s+to_char\(\(select min\(l\.waitstart\)[^\n]*as waits_since/,
  ' null as waits_since',
)

const preparedSql = `
  select p.gid, p.owner, p.database, ${toTimeSql('p.prepared')} as prepared
  from pg_prepared_xacts p order by p.prepared limit 5`

/** A session that waits for a lock or that blocks others. */
export type LockNode = { session: ShownSession; blockers: number[]; wants: string | null; waitsSince: string | null }

/** The pid 0, which PostgreSQL reports for a blocker without a session: a prepared transaction. */
const preparedPid = 0

export async function readBlocking(ask: AskDatabase): Promise<BlockingTree> {
  const first = await ask({ sql: withoutWaitstart })
  const { rows } = first.server.major >= 14 && first.rows.length > 0 ? await ask({ sql: postgresSql }) : first
  const nodes = rows.map(toNode)
  const isPrepared = nodes.some(({ blockers }) => blockers.includes(preparedPid))
  return toTrees(nodes, { prepared: isPrepared ? (await ask({ sql: preparedSql })).rows : [], unexplained: [] })
}

/** Arranges sessions as trees. Each session is below the session for which it waits. */
export function toTrees(
  found: readonly LockNode[],
  { prepared, unexplained }: Pick<BlockingTree, 'prepared' | 'unexplained'>,
): BlockingTree {
  const nodes = new Map(found.map((node) => [node.session.pid, node]))
  const waiting = [...nodes.values()].filter(({ blockers }) => blockers.length > 0)
  const holders = new Set(waiting.flatMap(({ blockers }) => blockers))
  const roots = [...holders].filter((pid) => (nodes.get(pid)?.blockers.length ?? 0) === 0)
  const trees = [...roots, ...findCycles(roots, nodes)]
    .map((pid) => toTree(pid, nodes))
    .sort((a, b) => b.blocks - a.blocks)
  return {
    waiting: waiting.length + unexplained.length,
    roots: trees,
    prepared,
    unexplained,
    whole: [...found.map((node) => JSON.stringify(node)), ...unexplained].join('\n'),
  }
}

function toNode(row: SqlRow): LockNode {
  const blockers = String(row.blockers ?? '')
  return {
    session: toSession(row),
    blockers: blockers === '' ? [] : [...new Set(blockers.split(',').map(Number))],
    wants: row.wants === null ? null : String(row.wants),
    waitsSince: row.waits_since === null ? null : String(row.waits_since),
  }
}

/**
 * Chooses one session of each deadlock, which has no root. The server ends one session of a
 * deadlock after deadlock_timeout.
 */
function findCycles(roots: readonly number[], nodes: ReadonlyMap<number, LockNode>): number[] {
  const below = (from: readonly number[]) => {
    const seen = new Set(from)
    for (const pid of seen) for (const [each, { blockers }] of nodes) if (blockers.includes(pid)) seen.add(each)
    return seen
  }
  const covered = below(roots)
  const found: number[] = []
  for (const [pid, { blockers }] of nodes) {
    if (blockers.length === 0 || covered.has(pid)) continue
    found.push(pid)
    for (const each of below([pid])) covered.add(each)
  }
  return found
}

/** Builds one tree. A session that waits for several sessions appears once below each of them. */
function toTree(rootPid: number, nodes: ReadonlyMap<number, LockNode>): BlockingTree['roots'][number] {
  const tree: { depth: number; text: string }[] = []
  const seen = new Set<number>([rootPid])
  let longestSince: string | null = null
  const add = (pid: number, depth: number) => {
    for (const [below, { session, blockers, wants, waitsSince }] of nodes) {
      if (!blockers.includes(pid) || seen.has(below)) continue
      seen.add(below)
      const since = waitsSince ?? session.stateSince ?? null
      if (since !== null && (longestSince === null || since < longestSince)) longestSince = since
      tree.push({ depth, text: `${describeSession(session)}${wants ? ` [wants ${wants}]` : ''}` })
      add(below, depth + 1)
    }
  }
  add(rootPid, 0)
  return { root: nodes.get(rootPid)?.session ?? null, blocks: seen.size - 1, longestSince, tree }
}

export const askBlocking = (read: ServerReader['readBlocking']): Question => ({
  name: 'blocking',
  asks: 'who waits for whose locks',
  async read(ask) {
    const { waiting, roots, prepared, unexplained, whole } = await read(ask)
    const summary = fitSummary(roots, (kept, omitted) => ({
      sessionsWaiting: waiting,
      roots: kept.map(({ root, tree, ...rest }) => ({
        ...(root ?? { preparedTransactions: prepared }),
        ...rest,
        waiting: tree.slice(0, 8).map(({ depth, text }) => `${'· '.repeat(depth)}${text}`),
        ...(tree.length > 8 && { moreWaiting: tree.length - 8 }),
      })),
      ...(unexplained.length > 0 && { holderNotListed: unexplained.slice(0, 5) }),
      ...(omitted > 0 && { moreRoots: omitted }),
    }))
    return { summary, whole, isEmpty: waiting === 0 }
  },
  say: ({ sessionsWaiting, roots }) => {
    const [first] = (roots ?? []) as { pid?: number; user?: string; blocks: number }[]
    const waiting = Number(sessionsWaiting)
    if (waiting === 0) return 'no session waits for a lock'
    const count = `${formatCount(waiting, 'session')} waiting for a lock`
    if (!first) return `${count}; the server does not list who holds it`
    const who = first.pid === undefined ? 'a prepared transaction' : `session ${first.pid} of ${first.user}`
    return `${count}; ${who} blocks ${first.blocks}`
  },
})

export const blocking: Question = askBlocking(readBlocking)
