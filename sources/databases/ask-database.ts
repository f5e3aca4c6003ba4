import { z } from 'zod'
import { defineSourceTool, type SourceTool } from '../kind.ts'
import { blocking } from './blocking.ts'
import type { AskDatabase } from './connect.ts'
import { connections } from './connections.ts'
import { databases } from './databases.ts'
import { mysqlQuestions } from './mysql/questions.ts'
import type { Question } from './question.ts'
import { replication } from './replication.ts'
import { statements } from './statements.ts'
import { tables } from './tables.ts'
import { transactions } from './transactions.ts'

/**
 * The named questions for database servers. Each product has the same questions, each with a few
 * fixed statements that run in a transaction that cannot write.
 */

const postgresQuestions: readonly Question[] = [
  blocking,
  connections,
  replication,
  transactions,
  statements,
  tables,
  databases,
]
const names = postgresQuestions.map(({ name }) => name) as [string, ...string[]]

const find = (questions: readonly Question[], name: unknown): Question =>
  questions.find((each) => each.name === name) as Question

/** Returns the questions in the form of a product. */
const questionsOf = ({ product }: Record<string, unknown>): readonly Question[] =>
  product === 'MySQL' || product === 'MariaDB' ? mysqlQuestions : postgresQuestions

const askDatabase = (questions: readonly Question[]): SourceTool<AskDatabase> =>
  defineSourceTool({
    name: 'ask_database',
    firstFor: ['database'],
    description: 'Ask a database server one question about its state now.',
    input: z.strictObject({
      source: z.string().max(40).optional().describe('where there are several'),
      question: z.enum(names).describe(postgresQuestions.map(({ name, asks }) => `${name}: ${asks}`).join('; ')),
    }),
    judge: () => ({ ok: true as const }),
    labels: () => ({}),
    say: (summary, { question }) => find(questionsOf(summary), question).say(summary),
    read: async (ask: AskDatabase, { question }, { pastStatements }) =>
      await find(questions, question).read(ask, pastStatements),
  })

export const askPostgres: SourceTool<AskDatabase> = askDatabase(postgresQuestions)
export const askMysql: SourceTool<AskDatabase> = askDatabase(mysqlQuestions)
