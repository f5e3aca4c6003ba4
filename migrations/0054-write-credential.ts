import { type Kysely, sql } from 'kysely'

/** The second credential of a source: it has the rights of the writes of its kind, and effects alone read it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table source add column write_credential text`.execute(db)
}
