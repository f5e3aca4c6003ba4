import { type Kysely, sql } from 'kysely'

/**
 * Adds further rights to decide, beside a person's own limits: each with a risk, resources,
 * incident types and an end.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const list = sql`alter table operator add column rights jsonb not null default '[]' check (jsonb_typeof(rights) = 'array')`
  await list.execute(db)
  await sql`grant update (rights) on operator to nightshift_app`.execute(db)
}
