import { isNearlyFull } from '../../domain/connection-limit.ts'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { cutText } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import type { BlockingTree, Connections, LongTransaction, ServerReader } from './reader.ts'
import type { ShownSession } from './sessions.ts'

/**
 * Facts about a database server for the first turn of an investigation. Each line names one
 * remarkable state of the server now. At most 1 kB.
 */

const maxFacts = 8
const maxFactCharacters = 240
const maxBytes = 1_000
/** Seconds after which a transaction counts as long. */
const longSeconds = 60

export async function readFacts(ask: AskDatabase, reader: ServerReader): Promise<{ facts: string[] }> {
  const blocking = await reader.readBlocking(ask)
  const connections = await reader.readConnections(ask)
  const replication = await reader.readReplication(ask)
  const { long, prepared } = await reader.readTransactions(ask)
  const remarks = await reader.readRemarks(ask)
  const { server } = await ask({ sql: 'select 1' })
  // Leaves out sessions that the lines about blocked sessions already describe.
  const isTold = ({ pid, state }: ShownSession) =>
    state.endsWith('waits for a lock') || blocking.roots.some(({ root }) => root?.pid === pid)
  const isLong = (each: (typeof long)[number]) => each.openSeconds >= longSeconds && !isTold(each)
  const facts = [
    `${server.product} ${server.version}, ${replication.role}`,
    ...blocking.roots.map(sayRoot),
    ...sayUnexplained(blocking),
    sayConnections(connections),
    ...replication.facts,
    ...long.filter(isLong).slice(0, 2).map(sayLong),
    ...prepared
      .slice(0, 1)
      .map((each) => `prepared transaction ${each.gid} of ${each.owner} is open for ${span(each.open_seconds)}`),
    ...remarks,
  ]
  return { facts: fitFacts(facts.filter((each) => each !== null)) }
}

/** Keeps the first facts that fit into the limit. A long fact is cut. */
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

function sayUnexplained({ unexplained }: BlockingTree): string[] {
  const [first] = unexplained
  if (first === undefined) return []
  return [
    `${formatCount(unexplained.length, 'session')} waiting for a lock whose holder the server does not list: ${first}`,
  ]
}

function sayRoot({ root, blocks }: BlockingTree['roots'][number]): string {
  const who = root
    ? `${nameSession(root)} since ${root.stateSince?.slice(11, 19) ?? '?'}: ${root.statement}`
    : 'a prepared transaction'
  return `${formatCount(blocks, 'session')} waiting for locks below ${who}`
}

function sayConnections(connections: Connections): string | null {
  if (!isNearlyFull(connections)) return null
  const { used, max, reserved, holders } = connections
  const [first] = holders
  const most = first
    ? `; ${first.count} of them ${first.application ?? first.user} on ${first.database}, ${first.state}`
    : ''
  return `${used} of ${max} connections in use (${reserved} for superusers)${most}`
}

const sayLong = ({ openSeconds, holdsBack, ...session }: LongTransaction): string =>
  `transaction open for ${span(openSeconds)}: ${nameSession(session)}${holdsBack ? `, holds vacuum back by ${holdsBack} transactions` : ''}: ${session.statement}`
