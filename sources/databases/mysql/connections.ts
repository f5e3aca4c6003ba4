import { processlistOf, statusOf, toTimeSql } from '../../../clients/databases/mysql-views.ts'
import type { AskDatabase } from '../connect.ts'
import type { Connections } from '../reader.ts'

/**
 * Reads the used connections of MySQL and MariaDB and their limit. The limit includes one
 * connection for an administrator.
 */

export async function readConnections(ask: AskDatabase): Promise<Connections> {
  const { server } = await ask({ sql: 'select 1' })
  const limitSql = `select @@max_connections as max, variable_value as used from ${statusOf(server)} where variable_name = 'Threads_connected'`
  const [{ max = 0, used = 0 } = {}] = (await ask({ sql: limitSql })).rows
  const { rows } = await ask({
    sql: `select user, db as \`database\`, substring_index(host, ':', 1) as \`from\`,
      case command when 'Sleep' then 'idle' when 'Query' then 'active' else lower(command) end as state, count(*) as count,
      ${toTimeSql('timestampadd(second, -max(time), now())')} as oldest
    from ${processlistOf(server)} where id <> connection_id() and user not in ('system user', 'event_scheduler')
    group by user, db, substring_index(host, ':', 1), command order by count(*) desc limit 100`,
  })
  return {
    used: Number(used),
    max: Number(max),
    reserved: 0,
    holders: rows.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== '')),
    ),
  }
}
