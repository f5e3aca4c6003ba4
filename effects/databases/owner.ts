import { statusOf } from '../../clients/databases/mysql-views.ts'
import type { DatabaseSession } from '../../clients/databases/server.ts'
import type { DatabaseAct } from '../../domain/database-write.ts'
import { EffectRefused } from '../effect.ts'

/** Programs that manage a server and undo others' changes, told by what the server shows. */

type Owner = {
  name: string
  /** A condition in SQL that holds on its servers alone. */
  mark: string
  /** Slots that it makes again. */
  keeps: RegExp
  instead: string
}

const owners: readonly Owner[] = [
  {
    name: 'Patroni',
    // Its sessions, whose name anybody may take, are a superuser's; and it gives all of these by
    // the command line: CMDLINE_OPTIONS in patroni/postgresql/config.py.
    mark: `exists (select from pg_stat_activity a join pg_roles r on r.rolname = a.usename where r.rolsuper and a.application_name ~ '^Patroni( |$)')
      or (select count(*) = 13 from pg_settings where source = 'command line' and name in ('listen_addresses', 'port', 'cluster_name', 'wal_level', 'hot_standby', 'wal_log_hints',
        'max_connections', 'max_wal_senders', 'max_replication_slots', 'max_prepared_transactions', 'max_locks_per_transaction', 'max_worker_processes', 'track_commit_timestamp'))`,
    // It drops slots that it does not know: one that stays is a member's, or in its configuration.
    keeps: /./,
    instead: 'remove the member, or the slot by "patronictl edit-config"',
  },
  {
    name: 'CloudNativePG',
    // A setting that it fixes (https://cloudnative-pg.io/documentation/current/postgresql_conf/);
    // anybody may make a slot, or a setting with a dot, of its names.
    mark: `current_setting('ssl_cert_file') like '/controller/certificates/%'`,
    keeps: /^_cnpg_/,
    instead: 'change replicationSlots of its Cluster',
  },
]

const sql = `select current_setting('cluster_name') as cluster, ${owners.map(({ mark }, at) => `(${mark}) as owner_${at}`).join(', ')}`

/**
 * A line for a write's card; null without a known owner. Throws EffectRefused for what the owner
 * would undo.
 */
export async function sayOwner(session: DatabaseSession, act: DatabaseAct): Promise<string | null> {
  const [row = {}] = (await session.read({ sql })).rows
  const owner = owners.find((_, at) => row[`owner_${at}`] === true)
  if (!owner) return null
  const cluster = row.cluster ? ` (cluster ${row.cluster})` : ''
  if (act.write === 'drop_replication_slot' && owner.keeps.test(act.slot)) {
    const detail = `${owner.name} manages this server${cluster}, and would make the slot ${act.slot} again: ${owner.instead}.`
    throw new EffectRefused('conflict', 'OWNED', detail)
  }
  return `${owner.name} manages this server${cluster}: what it decides goes before this`
}

/**
 * The same for MySQL and MariaDB under Galera
 * (https://mariadb.com/kb/en/galera-cluster-status-variables/). It would undo none of the writes.
 */
export async function sayCluster({ read, server }: DatabaseSession): Promise<string | null> {
  const { rows } = await read({
    sql: `select lower(variable_name) as name, variable_value as value from ${statusOf(server)} where variable_name in ('wsrep_cluster_size', 'wsrep_cluster_status')`,
  })
  const of = (name: string) => rows.find((row) => row.name === name)?.value
  const size = Number(of('wsrep_cluster_size') ?? 0)
  if (size === 0) return null
  return `Galera manages this server (a cluster of ${size}, ${of('wsrep_cluster_status')}): what it decides goes before this, and what runs at its other servers is not touched`
}
