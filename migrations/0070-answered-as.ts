import { type Kysely, sql } from 'kysely'

/**
 * Records the name that a model reported in its last response. If the name changes, the model's
 * grade no longer counts.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table model_profile add column answered_as text`.execute(db)
}
