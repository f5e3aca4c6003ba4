import { z } from 'zod'
import { defineSourceKind, defineSourceTool, type SourceKind } from '../kind.ts'
import { blocking } from './blocking.ts'
import { type AskDatabase, connectDatabase } from './connect.ts'
import { connections } from './connections.ts'
import { databases } from './databases.ts'
import { readFacts } from './facts.ts'
import { listPostgres } from './inventory.ts'
import type { Question } from './question.ts'
import { replication } from './replication.ts'
import { readState } from './state.ts'
import { statements } from './statements.ts'
import { tables } from './tables.ts'
import { sayTooMuch } from './too-much.ts'
import { transactions } from './transactions.ts'

/** PostgreSQL by questions that have a name. Each is a few statements of ours, in a transaction that cannot write. */

const all: readonly Question[] = [blocking, connections, replication, transactions, statements, tables, databases]
const names = all.map(({ name }) => name) as [string, ...string[]]

const find = (name: unknown): Question => all.find((each) => each.name === name) as Question

const askDatabase = defineSourceTool({
  name: 'ask_database',
  firstFor: ['database'],
  description: 'Ask a database server one question about its state now.',
  input: z.strictObject({
    source: z.string().max(40).optional().describe('where there are several'),
    question: z.enum(names).describe(all.map(({ name, asks }) => `${name}: ${asks}`).join('; ')),
  }),
  judge: () => ({ ok: true as const }),
  labels: () => ({}),
  say: (summary, { question }) => find(question).say(summary),
  read: async (ask: AskDatabase, { question }) => await find(question).read(ask),
})

/** Oldest version that the questions are written for: older ones lack the views. */
const oldestMajor = 10

export const postgresql: SourceKind = defineSourceKind<AskDatabase>({
  kind: 'postgresql',
  title: 'PostgreSQL',
  protocol: 'postgresql',
  options: z.strictObject({ tls: z.enum(['off', 'unverified', 'verified']).optional() }),
  connect: connectDatabase,
  async probe(ask) {
    const { rows, server } = await ask({
      sql: `select pg_is_in_recovery() as replica, current_database() as database, pg_has_role('pg_read_all_stats', 'usage') as sees_all`,
    })
    const [{ replica = false, database = '', sees_all = false } = {}] = rows
    const age =
      server.major < oldestMajor ? `; it is older than version ${oldestMajor}, and some questions get no answer` : ''
    const rights = sees_all ? '' : '; the login sees its own sessions alone: GRANT pg_read_all_stats'
    return `it answers: PostgreSQL ${server.version}, ${replica ? 'a replica' : 'a primary'}, database ${database}${age}${rights}${await sayTooMuch(ask, server.major)}`
  },
  contextOf: { database: (ask) => readFacts(ask) },
  listResources: listPostgres,
  is: 'database',
  readState,
  tools: [askDatabase],
})
