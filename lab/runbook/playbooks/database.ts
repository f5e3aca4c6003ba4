import type { Conversation, RunbookStep } from '../conversation.ts'
import {
  call,
  done,
  escalate,
  type Facts,
  lastVerification,
  number,
  type OperatorTurn,
  object,
  quotedOf,
  type RunbookCall,
  resolve,
  rows,
  stepsAfter,
  subject,
  text,
  words,
} from '../facts.ts'

/**
 * Handles alerts about database servers: asks the question whose result shows the cause, repairs
 * the cause with a write and asks again, or escalates with the root cause.
 */

/**
 * The cause that a result shows: the root cause in words, and the write that repairs it. If `write`
 * is null, the cause is for a person.
 */
type RootFound = { root: string; write: RunbookCall | null; facts: Facts; nextStep?: string }
type DatabasePlay = {
  question: string
  find(summary: Facts, database: string): RootFound | null
  /** Returns the text in the result which shows that the fault is over. Null if it is not over. */
  isOver?(summary: Facts, before: Facts): string | null
}

const reason = (root: string) => ({ reason: root.slice(0, 400) })
const firstOf = (summary: Facts, list: string, fits: (each: Facts) => boolean = () => true): Facts | null =>
  rows({ items: summary[list] }).find(fits) ?? null
const nameOf = (session: Facts): string =>
  `session ${session.pid} of ${text(session, 'application') ?? text(session, 'user')}, ${text(session, 'state')}`

const ofSession = (tool: string, database: string, session: Facts, root: string): RunbookCall =>
  call(tool, { database, pid: session.pid, began: session.began, ...reason(root) })

const plays: Record<string, DatabasePlay> = {
  postgresql_sessions_blocked: {
    question: 'blocking',
    find(summary, database) {
      const root = firstOf(summary, 'roots')
      if (!root || number(root, 'pid') === null) return null
      const said = `${nameOf(root)} blocks ${root.blocks} sessions`
      return {
        root: said,
        facts: root,
        write:
          text(root, 'state') === 'idle in transaction' ? ofSession('terminate_session', database, root, said) : null,
      }
    },
    isOver: ({ sessionsWaiting }) => (sessionsWaiting === 0 ? '"sessionsWaiting":0' : null),
  },
  postgresql_unused_replication_slot: {
    question: 'replication',
    find(summary, database) {
      const slot = firstOf(summary, 'slots', ({ active }) => active === false)
      if (!slot) return null
      const said = `the slot ${slot.slot} is inactive and keeps ${slot.keeps_bytes} bytes of WAL`
      return {
        root: said,
        facts: slot,
        write: call('drop_replication_slot', { database, slot: slot.slot, ...reason(said) }),
      }
    },
    isOver: (summary) => (firstOf(summary, 'slots', ({ active }) => active === false) ? null : '"role":"primary"'),
  },
  mysql_slave_sql_thread_not_running: replicaPlay(),
  mysql_slave_io_thread_not_running: replicaPlay(),
  postgresql_replication_lag: longQuery('replay waits for it'),
  postgresql_temp_files_high: longQuery('it holds the temporary files'),
  postgresql_too_many_connections: {
    question: 'connections',
    find(summary) {
      const most = firstOf(summary, 'holders')
      if (!most) return null
      return {
        root: `${text(most, 'application') ?? text(most, 'user')} holds ${most.count} of ${summary.max} connections, ${text(most, 'state')}`,
        facts: most,
        write: null,
        nextStep: 'Limit the pool of that program, because the program reopens every session that is ended.',
      }
    },
  },
  postgresql_transaction_id_wraparound: {
    question: 'tables',
    find(summary) {
      const oldest = firstOf(summary, 'oldest')
      if (!oldest) return null
      return {
        root: `${oldest.table} is ${oldest.age} transactions of age${text(oldest, 'options') ? `, with ${text(oldest, 'options')}` : ''}`,
        facts: oldest,
        write: null,
        nextStep: 'Let the vacuum of the table run, and reset the table options that slow the vacuum.',
      }
    },
  },
  postgresql_too_many_dead_tuples: {
    question: 'tables',
    find(summary) {
      const held = Array.isArray(summary.holdsVacuumBack) ? String(summary.holdsVacuumBack[0] ?? '') : ''
      const most = firstOf(summary, 'deadRows')
      if (held === '' || !most) return null
      return {
        root: `${held}, holds vacuum back; ${most.table} has ${most.dead_rows} dead rows`,
        facts: most,
        write: null,
        nextStep: 'Ask the coordinator of the transaction whether to commit it or roll it back.',
      }
    },
  },
  postgresql_slow_statement: {
    question: 'statements',
    find(summary) {
      const isSlower = ({ now, before }: Facts) => meanOf(now) > 20 && meanOf(now) > 2 * meanOf(before)
      const slow = firstOf(summary, 'statements', isSlower) ?? firstOf(summary, 'statements')
      if (!slow) return null
      const root = `the statement ${text(slow, 'statement')} takes ${meanOf(slow.now)} ms now, and took ${meanOf(slow.before)} ms before`
      return {
        root,
        facts: slow,
        write: null,
        nextStep: 'Compare the plan of the statement with its plan after ANALYZE of the tables.',
      }
    },
  },
  postgresql_high_sequential_reads: {
    question: 'tables',
    find(summary) {
      const read = firstOf(summary, 'readInWhole')
      if (!read) return null
      const root = `${read.table} is read in whole, ${read.rows_a_second} rows a second; its indexes are ${text(read, 'indexes') ?? 'none'}`
      return {
        root,
        facts: read,
        write: null,
        nextStep: 'Find the index that a migration dropped, and build it concurrently.',
      }
    },
  },
  postgresql_dead_locks: {
    question: 'databases',
    find(summary) {
      const most = rows({ items: summary.databases }).toSorted((a, b) => Number(b.deadlocks) - Number(a.deadlocks))[0]
      if (!most) return null
      const circle = Array.isArray(summary.waitedForEachOther)
        ? `; these wait for each other: ${summary.waitedForEachOther.join(' | ')}`
        : ''
      const nextStep = 'Change one of the programs so that both lock the rows in the same order.'
      return { root: `${most.database} had ${most.deadlocks} deadlocks${circle}`, facts: most, write: null, nextStep }
    },
  },
}

/**
 * Starts a stopped replica. Leaves a replica that stopped because of an error to a person, because
 * it would stop again.
 */
function replicaPlay(): DatabasePlay {
  return {
    question: 'replication',
    find(summary, database) {
      const channel = firstOf(summary, 'channels')
      if (!channel) return null
      const [receiver, applier] = [text(channel, 'receiver'), text(channel, 'applier')]
      const error = [text(channel, 'applierError'), text(channel, 'receiverError')].find((each) => each !== 'none')
      const root = `the receiver of the replica runs: ${receiver}, its applier: ${applier}, ${error ?? 'without an error'}`
      const isStopped = error === undefined && (receiver === 'No' || applier === 'No')
      return {
        root,
        facts: channel,
        write: isStopped ? call('start_replica', { database, ...reason(root) }) : null,
        nextStep: 'Compare the row on both servers before you skip any event.',
      }
    },
    isOver: (summary) =>
      firstOf(summary, 'channels', ({ receiver, applier }) => receiver === 'Yes' && applier === 'Yes')
        ? '"applier":"Yes"'
        : null,
  }
}

const meanOf = (part: unknown): number => number(object(part), 'mean_ms') ?? 0

/** Handles the longest query, for which other sessions wait, or which fills the disk. */
function longQuery(because: string): DatabasePlay {
  return {
    question: 'transactions',
    find(summary, database) {
      const longest = firstOf(summary, 'transactions', ({ state }) => state === 'active')
      if (!longest) return null
      const said = `${nameOf(longest)}, runs for ${longest.openSeconds} s: ${because}`
      return { root: said, facts: longest, write: ofSession('cancel_query', database, longest, said) }
    },
    isOver: (summary, { pid }) =>
      firstOf(summary, 'transactions', (each) => each.pid === pid && each.state === 'active')
        ? null
        : '"transactions":',
  }
}

export const databaseTypes = Object.keys(plays)

export function askServer(conversation: Conversation): OperatorTurn {
  const database = subject(conversation, 'database')
  const play = plays[conversation.context!.incident.type]
  if (!database || !play) return escalate(conversation, 'The alert names no database server that is a source.')
  const ask = call('ask_database', { source: database, question: play.question })
  const [first] = answersOf(conversation.steps, play.question)
  if (!first) return { say: `I ask ${database} about ${play.question}.`, calls: [ask] }
  const found = play.find(summaryOf(first), database)
  if (!found) return escalate(conversation, `${database} no longer shows a cause.`, { category: 'no_fault_found' })
  const { root, write, nextStep } = found
  if (!write)
    return escalate(conversation, `On ${database} ${root}.`, { category: 'no_tool', ...(nextStep && { nextStep }) })
  const written = done(conversation.steps, write.tool).at(-1)
  if (!written) return { say: `On ${database} ${root}.`, calls: [write] }
  const since = stepsAfter(conversation.steps, write.tool)
  const [again] = answersOf(since, play.question)
  if (!again) return { say: 'I check whether the write helped.', calls: [ask] }
  const over = play.isOver?.(summaryOf(again), found.facts) ?? null
  if (over === null || lastVerification([written, ...since]) === 'not_held')
    return escalate(conversation, `On ${database} ${root}. ${write.tool} did not end it.`)
  return resolve(conversation, 'repaired', `On ${database} ${root}. ${write.tool} ended it.`, [
    { kind: 'was', text: root, quotes: quotedOf(first, found.facts, 'pid', 'slot', 'state', 'keeps_bytes', 'applier') },
    {
      kind: 'did',
      text: `${write.tool} on ${database}`,
      quotes: words(written, text(object(written.result.data), 'detail') ?? write.tool),
    },
    { kind: 'is', text: `${database} after the write`, quotes: words(again, over) },
  ])
}

type AnsweredStep = ReturnType<typeof done>[number]

const answersOf = (steps: RunbookStep[], question: string): AnsweredStep[] =>
  done(steps, 'ask_database').filter(({ args }) => args.question === question)

const summaryOf = ({ result }: AnsweredStep): Facts => object(object(result.data).summary)
