import { type Kysely, sql } from 'kysely'

/** Keeps the name that a model gave itself in its last answer: where that changes, its grade counts no more. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table model_profile add column answered_as text`.execute(db)
}
