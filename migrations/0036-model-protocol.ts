import { type Kysely, sql } from 'kysely'

/**
 * Adds the protocol of a declared model. Null if a worker of an older release declared the model.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table declared_model add column protocol text check (protocol in ('auto', 'native', 'json'))`.execute(db)
}
