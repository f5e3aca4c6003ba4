import { type Kysely, sql } from 'kysely'

/**
 * Records the models that the workers know (without their keys), the features of each server, and
 * until when a server that did not respond is not used.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table declared_model (
      name text primary key,
      server text not null,
      model text not null,
      fallbacks jsonb not null default '[]',
      place integer not null,
      declared_at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`alter table model_profile add column abilities jsonb not null default '{}'`.execute(db)
  await sql`alter table model_profile add column away_until timestamptz`.execute(db)
  await sql`grant select, insert, update, delete on declared_model to nightshift_app`.execute(db)
}
