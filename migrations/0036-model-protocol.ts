import { type Kysely, sql } from 'kysely'

/** By which protocol a declared model is asked. Null: a worker of an older release declared it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table declared_model add column protocol text check (protocol in ('auto', 'native', 'json'))`.execute(db)
}
