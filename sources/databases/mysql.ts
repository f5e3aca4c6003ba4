import { z } from 'zod'
import { defineSourceKind, type SourceKind } from '../kind.ts'
import { askMysql } from './ask-database.ts'
import { type AskDatabase, connectDatabase } from './connect.ts'
import { readFacts } from './facts.ts'
import { listMysql, mysqlReader } from './mysql/reader.ts'
import { readReplication } from './mysql/replication.ts'
import { readState } from './state.ts'

const quoted = (words: readonly string[]): string => words.map((each) => `'${each}'`).join(', ')

/**
 * All rights that a login for reading may have. A new privilege of a later version is reported
 * until it is added here.
 */
const reading = [
  'USAGE',
  'PROCESS',
  'REPLICATION CLIENT',
  'SLAVE MONITOR',
  'REPLICA MONITOR',
  'BINLOG MONITOR',
  'SELECT',
  'SHOW DATABASES',
  'SHOW VIEW',
]

const excessSql = `
  select privilege_type as granted from information_schema.user_privileges where privilege_type not in (${quoted(reading)})
    and grantee = concat('''', replace(current_user(), '@', '''@'''), '''')
  union all select concat(privilege_type, ' on ', table_schema) from information_schema.schema_privileges where privilege_type not in (${quoted(reading)})
  union all select concat(privilege_type, ' on ', table_schema, '.', table_name) from information_schema.table_privileges where privilege_type not in (${quoted(reading)})
  limit 10`

export const mysql: SourceKind = defineSourceKind<AskDatabase>({
  kind: 'mysql',
  title: 'MySQL or MariaDB',
  protocol: 'mysql',
  options: z.strictObject({ tls: z.enum(['off', 'unverified', 'verified']).optional() }),
  connect: connectDatabase,
  async probe(ask) {
    const { server } = await ask({ sql: 'select 1' })
    const { role } = await readReplication(ask)
    // Tests the right PROCESS, without which this query fails.
    await ask({ sql: 'select count(*) as count from information_schema.innodb_trx' })
    return `the server answers: ${server.product} ${server.version}, a ${role}`
  },
  async warn(ask) {
    const { rows } = await ask({ sql: excessSql })
    const found = rows.map(({ granted }) => String(granted))
    return found.length === 0
      ? null
      : `this login may write (it has ${found.slice(0, 3).join(', ')}): use the grants of "nightshift sources rights mysql"`
  },
  contextOf: { database: (ask) => readFacts(ask, mysqlReader) },
  listResources: listMysql,
  is: 'database',
  readState: (ask) => readState(ask, mysqlReader),
  tools: [askMysql],
})
