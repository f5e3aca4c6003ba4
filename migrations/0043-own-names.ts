import { type Kysely, sql } from 'kysely'

/**
 * A function that runs as the owner finds the product's own tables: PostgreSQL looks into `pg_temp` first where a search path does not name it, so that a
 * session's temporary table would have stood in for `row_change` or `audit_head`, and its trigger would have run as the owner.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const name of ['chain_audit', 'note_row_change', 'platform_config_revise'])
    await sql.raw(`alter function ${name}() set search_path = pg_catalog, public, pg_temp`).execute(db)
}
