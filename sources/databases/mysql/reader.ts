import { statusOf } from '../../../clients/databases/mysql-views.ts'
import { formatSpan } from '../../../domain/format.ts'
import type { ListedDatabase } from '../../../domain/listed-database.ts'
import type { AskDatabase } from '../connect.ts'
import type { ServerReader } from '../reader.ts'
import { readBlocking } from './blocking.ts'
import { readConnections } from './connections.ts'
import { countersSql, findDeadlocks, findHistory } from './databases.ts'
import { readReplication, sayReplication } from './replication.ts'
import { readTransactions } from './transactions.ts'

/** Reads MySQL and MariaDB for the server's page and an investigation's first turn. */

const recentSeconds = 3_600
/** Number of old row versions above which the server becomes slow. */
const longHistory = 1_000_000

export const mysqlReader: ServerReader = {
  readBlocking,
  readConnections,
  readTransactions,
  readReplication: sayReplication,
  async readRemarks(ask) {
    const { server } = await ask({ sql: 'select 1' })
    const { rows } = await ask({ sql: countersSql(server) })
    const [uptime] = (
      await ask({ sql: `select variable_value as seconds from ${statusOf(server)} where variable_name = 'Uptime'` })
    ).rows
    const [seconds, history, deadlocks] = [Number(uptime?.seconds), findHistory(rows) ?? 0, findDeadlocks(rows) ?? 0]
    const remarks = [
      seconds < recentSeconds && `the server started ${formatSpan(seconds * 1_000)} ago`,
      history > longHistory && `the history list is ${history} long: an old transaction keeps old row versions`,
      deadlocks > 0 && `${deadlocks} deadlocks since the start`,
    ]
    return remarks.filter((each) => typeof each === 'string')
  },
}

const maxDatabases = 30

/** Describes a server of MySQL or MariaDB for the registry. */
export async function listMysql(ask: AskDatabase): Promise<{ database: ListedDatabase }> {
  const { role, channels } = await readReplication(ask)
  const { server } = await ask({ sql: 'select 1' })
  const list = server.product === 'MySQL' ? 'innodb_tablespaces' : 'innodb_sys_tablestats'
  const { rows } = await ask({
    sql: `select distinct substring_index(name, '/', 1) as name from information_schema.${list} where name like '%/%' order by 1 limit ${maxDatabases}`,
  })
  const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(channels[0]?.from ?? '') ?? []
  return {
    database: {
      product: server.product,
      version: server.version,
      role,
      replicatesFrom: host === '' ? null : { host, port: Number(port) },
      databases: rows.map(({ name }) => String(name)).filter((name) => !/^(?:mysql|sys)$/.test(name)),
    },
  }
}
