/**
 * The rights that a source of a database needs, as SQL statements. One login reads. The other login
 * can make the four writes and nothing else. An administrator runs the statements in the database
 * that the source names.
 */

export type DatabaseKind = 'postgresql' | 'mysql'
type DatabaseLogin = 'read' | 'write'

/**
 * Facts about a slot that change when it is used or created again. Before version 17 the server
 * does not report since when a slot is inactive.
 */
export const slotStateSql = `concat_ws(' ', s.slot_type, s.plugin, s.database, 'from', s.restart_lsn, 'to', s.confirmed_flush_lsn,
      'keeps', s.xmin, s.catalog_xmin, to_jsonb(s) ->> 'inactive_since')`

const postgresql: Record<DatabaseLogin, readonly string[]> = {
  read: [
    `CREATE ROLE nightshift_read LOGIN PASSWORD 'choose-one'`,
    'GRANT pg_read_all_stats TO nightshift_read',
    'ALTER ROLE nightshift_read SET default_transaction_read_only = on',
    // Must be set by the administrator, because a login may not set it for itself. No other setting
    // limits a sort or join on disk.
    `ALTER ROLE nightshift_read SET temp_file_limit = '1GB'`,
  ],
  write: [
    `CREATE ROLE nightshift_write LOGIN PASSWORD 'choose-one'`,
    'GRANT pg_read_all_stats, pg_signal_backend TO nightshift_write',
    'CREATE SCHEMA IF NOT EXISTS nightshift',
    // Uses a function, because a login with the attribute REPLICATION could read every row of the
    // server. The search path ends in `pg_temp`, which would otherwise be searched first: a view
    // that the login created there would run code as the owner of this function.
    `CREATE OR REPLACE FUNCTION nightshift.drop_inactive_slot(wanted name, seen text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM FROM pg_catalog.pg_replication_slots s WHERE slot_name = wanted AND NOT active
    AND seen = ${slotStateSql};
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM pg_drop_replication_slot(wanted);
  RETURN true;
END $$`,
    'REVOKE ALL ON FUNCTION nightshift.drop_inactive_slot(name, text) FROM PUBLIC',
    'GRANT USAGE ON SCHEMA nightshift TO nightshift_write',
    'GRANT EXECUTE ON FUNCTION nightshift.drop_inactive_slot(name, text) TO nightshift_write',
    'GRANT EXECUTE ON FUNCTION pg_catalog.pg_wal_replay_resume() TO nightshift_write',
  ],
}

/**
 * Privileges of MariaDB since 10.5. The columns of `mysql.user` show who is a superuser, and no
 * password.
 */
const mariadb: Record<DatabaseLogin, readonly string[]> = {
  read: [
    `CREATE USER nightshift_read IDENTIFIED BY 'choose-one'`,
    'GRANT PROCESS, SLAVE MONITOR ON *.* TO nightshift_read',
    'GRANT SELECT ON performance_schema.* TO nightshift_read',
  ],
  write: [
    `CREATE USER nightshift_write IDENTIFIED BY 'choose-one'`,
    'GRANT PROCESS, SLAVE MONITOR, CONNECTION ADMIN, REPLICATION SLAVE ADMIN ON *.* TO nightshift_write',
    'GRANT SELECT (Host, User, Super_priv) ON mysql.user TO nightshift_write',
  ],
}

/** Privileges of MySQL since 8.0. */
const mysql: Record<DatabaseLogin, readonly string[]> = {
  read: [
    `CREATE USER nightshift_read IDENTIFIED BY 'choose-one'`,
    'GRANT PROCESS, REPLICATION CLIENT ON *.* TO nightshift_read',
    'GRANT SELECT ON performance_schema.* TO nightshift_read',
  ],
  write: [
    `CREATE USER nightshift_write IDENTIFIED BY 'choose-one'`,
    'GRANT PROCESS, REPLICATION CLIENT, CONNECTION_ADMIN, REPLICATION_SLAVE_ADMIN ON *.* TO nightshift_write',
    'GRANT SELECT ON performance_schema.* TO nightshift_write',
    'GRANT SELECT (Host, User, Super_priv) ON mysql.user TO nightshift_write',
  ],
}

export const isDatabaseKind = (kind: string): kind is DatabaseKind => kind === 'postgresql' || kind === 'mysql'

export type DatabaseProduct = 'PostgreSQL' | 'MariaDB' | 'MySQL'

/**
 * Lists the products of a kind. MariaDB and MySQL use the same protocol, but name their privileges
 * differently.
 */
export const productsOf = (kind: DatabaseKind): readonly DatabaseProduct[] =>
  kind === 'postgresql' ? ['PostgreSQL'] : ['MariaDB', 'MySQL']

const rights = { PostgreSQL: postgresql, MariaDB: mariadb, MySQL: mysql }

/** Lists the statements in order, without semicolons. */
export const listRights = (product: DatabaseProduct, login: DatabaseLogin): readonly string[] => rights[product][login]
