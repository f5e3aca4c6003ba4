/**
 * The rights that a source of a database needs, as the statements that give them: one login reads, the other has the rights of the four writes and no
 * others. Run by an administrator in the database that the source names.
 */

export type DatabaseKind = 'postgresql'
type DatabaseLogin = 'read' | 'write'

/** All that changes of a slot once somebody used it, or made it again; servers before version 17 do not say since when it is inactive. */
export const slotStateSql = `concat_ws(' ', s.slot_type, s.plugin, s.database, 'from', s.restart_lsn, 'to', s.confirmed_flush_lsn,
      'keeps', s.xmin, s.catalog_xmin, to_jsonb(s) ->> 'inactive_since')`

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
    `CREATE OR REPLACE FUNCTION nightshift.drop_inactive_slot(wanted name, seen text) RETURNS boolean
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM FROM pg_replication_slots s WHERE slot_name = wanted AND NOT active
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

export const isDatabaseKind = (kind: string): kind is DatabaseKind => kind === 'postgresql'

/** Statements without their semicolons, in order. */
export const listRights = (login: DatabaseLogin): readonly string[] => postgresql[login]
