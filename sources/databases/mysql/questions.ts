import { askBlocking } from '../blocking.ts'
import { askConnections } from '../connections.ts'
import type { Question } from '../question.ts'
import { askTransactions } from '../transactions.ts'
import { readBlocking } from './blocking.ts'
import { readConnections } from './connections.ts'
import { databases } from './databases.ts'
import { replication } from './replication.ts'
import { statements } from './statements.ts'
import { tables } from './tables.ts'
import { readTransactions } from './transactions.ts'

/** The questions to a database server, in the form for MySQL and MariaDB. */
export const mysqlQuestions: readonly Question[] = [
  askBlocking(readBlocking),
  askConnections(readConnections),
  replication,
  askTransactions(readTransactions),
  statements,
  tables,
  databases,
]
