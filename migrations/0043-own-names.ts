import { type Kysely, sql } from 'kysely'

/**
 * Makes functions that run as the owner use only Nightshift's own tables. If a search path does not
 * name `pg_temp`, PostgreSQL searches `pg_temp` first. A temporary table of a session could then
 * replace `row_change` or `audit_head`, and a trigger of this table would run as the owner.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of ['chain_audit', 'note_row_change', 'platform_config_revise'])
    await sql.raw(`alter function ${name}() set search_path = pg_catalog, public, pg_temp`).execute(db)
}
