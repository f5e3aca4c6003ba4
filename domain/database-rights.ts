/**
 * The rights that a source of a database needs, as SQL statements. One login only reads, and the
 * other can only make the four writes of `domain/database-write.ts`. An administrator runs the
 * statements in the database that the source names.
 */

export type DatabaseKind = 'postgresql' | 'mysql'
type DatabaseLogin = 'read' | 'write'

/**
 * Facts about a replication slot that change when the slot is used or created again. PostgreSQL
 * before version 17 does not report since when a slot is inactive.
 */
export const slotStateSql = `concat_ws(' ', s.slot_type, s.plugin, s.database, 'from', s.restart_lsn, 'to', s.confirmed_flush_lsn,
      'keeps', s.xmin, s.catalog_xmin, to_jsonb(s) ->> 'inactive_since')`

const postgresql: Record<DatabaseLogin, readonly string[]> = {
  read: [
    `CREATE ROLE nightshift_read LOGIN PASSWORD 'choose-one'`,
    'GRANT pg_read_all_stats TO nightshift_read',
    'ALTER ROLE nightshift_read SET default_transaction_read_only = on',
    // Must be set by the administrator, because a login may not set its own `temp_file_limit`. No
    // other setting limits the disk space of a sort or join.
    `ALTER ROLE nightshift_read SET temp_file_limit = '1GB'`,
  ],
  write: [
    `CREATE ROLE nightshift_write LOGIN PASSWORD 'choose-one'`,
    'GRANT pg_read_all_stats, pg_signal_backend TO nightshift_write',
    'CREATE SCHEMA IF NOT EXISTS nightshift',
    // Uses a function, because a login with the attribute REPLICATION could read every row of the
    // server. The search path ends in `pg_temp`, which is searched first if it is not named: a view
    // that the login created in `pg_temp` would then run code as the owner of the function.
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
 * Privileges in MariaDB 10.5 and later. The columns of `mysql.user` show who is a superuser, and no
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

/** Privileges in MySQL 8.0 and later. */
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
 * Lists the products of a kind of database. MariaDB and MySQL share a protocol, but name their
 * privileges differently.
 */
export const productsOf = (kind: DatabaseKind): readonly DatabaseProduct[] =>
  kind === 'postgresql' ? ['PostgreSQL'] : ['MariaDB', 'MySQL']

const rights = { PostgreSQL: postgresql, MariaDB: mariadb, MySQL: mysql }

/** Lists the SQL statements that grant the rights, in order and without semicolons. */
export const listRights = (product: DatabaseProduct, login: DatabaseLogin): readonly string[] => rights[product][login]
