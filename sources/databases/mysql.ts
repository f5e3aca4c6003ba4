import { z } from 'zod'
import type { ServerFacts } from '../../clients/databases/server.ts'
import { defineSourceKind, type SourceKind } from '../kind.ts'
import { askMysql } from './ask-database.ts'
import { type AskDatabase, connectDatabase } from './connect.ts'
import { readFacts } from './facts.ts'
import { listMysql, mysqlReader } from './mysql/reader.ts'
import { readReplication } from './mysql/replication.ts'
import { readState } from './state.ts'

/** MySQL and MariaDB as a source. */

/** Oldest versions that the questions are written for: older ones lack views and privileges. */
const isOld = ({ product, number }: ServerFacts): boolean => number < (product === 'MySQL' ? 80_000 : 100_500)

export const mysql: SourceKind = defineSourceKind<AskDatabase>({
  kind: 'mysql',
  title: 'MySQL or MariaDB',
  protocol: 'mysql',
  options: z.strictObject({ tls: z.enum(['off', 'unverified', 'verified']).optional() }),
  connect: connectDatabase,
  async probe(ask) {
    const { server } = await ask({ sql: 'select 1' })
    const age = isOld(server)
      ? `; it is older than ${server.product === 'MySQL' ? 'MySQL 8.0' : 'MariaDB 10.5'}, and some questions get no answer`
      : ''
    const { role } = await readReplication(ask)
    // Without PROCESS a login sees its own sessions alone, and this list not at all.
    await ask({ sql: 'select count(*) as count from information_schema.innodb_trx' })
    return `it answers: ${server.product} ${server.version}, a ${role}${age}`
  },
  contextOf: { database: (ask) => readFacts(ask, mysqlReader) },
  listResources: listMysql,
  is: 'database',
  readState: (ask) => readState(ask, mysqlReader),
  tools: [askMysql],
})
