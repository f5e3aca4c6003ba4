import { type Kysely, sql } from 'kysely'

/** Further rights of a person beside their own limits, in words: a risk, resources, incident types and an end. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const list = sql`alter table operator add column rights jsonb not null default '[]' check (jsonb_typeof(rights) = 'array')`
  await list.execute(db)
  await sql`grant update (rights) on operator to nightshift_app`.execute(db)
}
