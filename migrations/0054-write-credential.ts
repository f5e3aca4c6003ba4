import { type Kysely, sql } from 'kysely'

/**
 * Adds a second credential to a source. It has the rights for the writes of the source's kind, and
 * only effects read it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table source add column write_credential text`.execute(db)
}
