import { statusOf } from '../../clients/databases/mysql-views.ts'
import type { DatabaseSession } from '../../clients/databases/server.ts'
import type { DatabaseAct } from '../../domain/database-write.ts'
import { EffectRefused } from '../effect.ts'

/**
 * Programs that manage a database server and would undo other programs' changes. Such owners are
 * recognised by what the server shows.
 */

type Owner = {
  name: string
  /** A condition in SQL that is true only on servers that this program manages. */
  mark: string
  /** Matches names of replication slots that the program creates again after they are dropped. */
  keeps: RegExp
  instead: string
}

const owners: readonly Owner[] = [
  {
    name: 'Patroni',
    // Recognises Patroni by its sessions and its settings. Anybody may use the name of Patroni's
    // sessions, so a session also has to belong to a superuser. Patroni sets these 13 settings on
    // the command line: CMDLINE_OPTIONS in patroni/postgresql/config.py.
    mark: `exists (select from pg_stat_activity a join pg_roles r on r.rolname = a.usename where r.rolsuper and a.application_name ~ '^Patroni( |$)')
      or (select count(*) = 13 from pg_settings where source = 'command line' and name in ('listen_addresses', 'port', 'cluster_name', 'wal_level', 'hot_standby', 'wal_log_hints',
        'max_connections', 'max_wal_senders', 'max_replication_slots', 'max_prepared_transactions', 'max_locks_per_transaction', 'max_worker_processes', 'track_commit_timestamp'))`,
    // Matches every slot: Patroni drops unknown slots, so any slot that stays belongs to a member
    // or is in Patroni's configuration.
    keeps: /./,
    instead: 'remove the member, or the slot by "patronictl edit-config"',
  },
  {
    name: 'CloudNativePG',
    // Recognises CloudNativePG by a setting that it fixes
    // (https://cloudnative-pg.io/documentation/current/postgresql_conf/). The names that
    // CloudNativePG uses for slots or for settings with a dot prove nothing, because anybody may
    // use them.
    mark: `current_setting('ssl_cert_file') like '/controller/certificates/%'`,
    keeps: /^_cnpg_/,
    instead: 'change replicationSlots of its Cluster',
  },
]

const sql = `select current_setting('cluster_name') as cluster, ${owners.map(({ mark }, at) => `(${mark}) as owner_${at}`).join(', ')}`

/**
 * Returns a line for a write's approval card; null if no known program manages the server. Throws
 * EffectRefused for a change that the program would undo.
 */
export async function sayOwner(session: DatabaseSession, act: DatabaseAct): Promise<string | null> {
  const [row = {}] = (await session.read({ sql })).rows
  const owner = owners.find((_, at) => row[`owner_${at}`] === true)
  if (!owner) return null
  const cluster = row.cluster ? ` (cluster ${row.cluster})` : ''
  if (act.write === 'drop_replication_slot' && owner.keeps.test(act.slot)) {
    const detail = `${owner.name} manages this server${cluster}, and would create the slot ${act.slot} again: ${owner.instead}.`
    throw new EffectRefused('conflict', 'OWNED', detail)
  }
  return `${owner.name} manages this server${cluster} and may reverse this`
}

/**
 * Returns a line for the approval card of MySQL and MariaDB under Galera, which would undo none of
 * the writes (https://mariadb.com/kb/en/galera-cluster-status-variables/).
 */
export async function sayCluster({ read, server }: DatabaseSession): Promise<string | null> {
  const { rows } = await read({
    sql: `select lower(variable_name) as name, variable_value as value from ${statusOf(server)} where variable_name in ('wsrep_cluster_size', 'wsrep_cluster_status')`,
  })
  const of = (name: string) => rows.find((row) => row.name === name)?.value
  const size = Number(of('wsrep_cluster_size') ?? 0)
  if (size === 0) return null
  return `Galera manages this server (a cluster of ${size}, ${of('wsrep_cluster_status')}); the write does not reach its other servers`
}
