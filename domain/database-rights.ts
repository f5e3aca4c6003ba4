/**
 * The rights that a source of a database needs, as the statements that give them: one login reads, the other has the rights of the four writes and no
 * others. Run by an administrator in the database that the source names.
 */

export type DatabaseKind = 'postgresql'
type DatabaseLogin = 'read' | 'write'

const postgresql: Record<DatabaseLogin, readonly string[]> = {
  read: [
    `CREATE ROLE nightshift_read LOGIN PASSWORD 'choose-one'`,
    'GRANT pg_read_all_stats TO nightshift_read',
    'ALTER ROLE nightshift_read SET default_transaction_read_only = on',
  ],
  write: [
    `CREATE ROLE nightshift_write LOGIN PASSWORD 'choose-one'`,
    'GRANT pg_read_all_stats, pg_signal_backend TO nightshift_write',
    'CREATE SCHEMA IF NOT EXISTS nightshift',
    // The attribute REPLICATION would let it read every row of the server.
    `CREATE OR REPLACE FUNCTION nightshift.drop_inactive_slot(wanted name, kept_from pg_lsn) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM FROM pg_replication_slots WHERE slot_name = wanted AND NOT active AND restart_lsn IS NOT DISTINCT FROM kept_from;
  IF NOT FOUND THEN RETURN false; END IF;
  PERFORM pg_drop_replication_slot(wanted);
  RETURN true;
END $$`,
    'REVOKE ALL ON FUNCTION nightshift.drop_inactive_slot(name, pg_lsn) FROM PUBLIC',
    'GRANT USAGE ON SCHEMA nightshift TO nightshift_write',
    'GRANT EXECUTE ON FUNCTION nightshift.drop_inactive_slot(name, pg_lsn) TO nightshift_write',
    'GRANT EXECUTE ON FUNCTION pg_catalog.pg_wal_replay_resume() TO nightshift_write',
  ],
}

export const isDatabaseKind = (kind: string): kind is DatabaseKind => kind === 'postgresql'

/** Statements without their semicolons, in order. */
export const listRights = (login: DatabaseLogin): readonly string[] => postgresql[login]
