import { type Kysely, sql } from 'kysely'

/** Adds what a person may decide about, and whether the person may still sign in. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // A null list of types means all types, so that present people keep their rights.
  await sql`alter table operator
    add column max_risk text not null default 'critical'
      check (max_risk in ('none', 'low', 'medium', 'high', 'critical')),
    add column incident_types jsonb check (jsonb_typeof(incident_types) = 'array'),
    add column disabled_at timestamptz`.execute(db)
}
