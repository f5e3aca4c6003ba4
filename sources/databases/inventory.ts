import type { ListedDatabase } from '../../domain/listed-database.ts'
import type { AskDatabase } from './connect.ts'

/** Describes a database server for the registry: product, replication source and databases. */

const maxDatabases = 30

const postgresSql = `
  select pg_is_in_recovery() as replica,
    (select string_agg(datname, chr(10)) from (
      select datname from pg_database where datallowconn and not datistemplate order by 1 limit ${maxDatabases}) named) as databases,
    (select sender_host from pg_stat_wal_receiver) as host, (select sender_port from pg_stat_wal_receiver) as port`

export async function listPostgres(ask: AskDatabase): Promise<{ database: ListedDatabase }> {
  const { rows, server } = await ask({ sql: postgresSql })
  const [{ replica = false, databases = '', host = null, port = null } = {}] = rows
  return {
    database: {
      product: server.product,
      version: server.version,
      role: replica === true ? 'replica' : 'primary',
      replicatesFrom: host === null ? null : { host: String(host), port: Number(port) },
      databases: String(databases ?? '')
        .split('\n')
        .filter((each) => each !== ''),
    },
  }
}
