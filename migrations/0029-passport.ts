import { type Kysely, sql } from 'kysely'

/** Records what each model can do at each server, as last measured. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table model_passport (
      server text not null,
      model text not null,
      grade text not null check (grade in ('A', 'B', 'C', 'D', 'E', 'F')),
      measured jsonb not null,
      measured_by text not null,
      measured_at timestamptz not null default nightshift_now(),
      primary key (server, model)
    )`.execute(db)
  await sql`grant select, insert, update on model_passport to nightshift_app`.execute(db)
}
