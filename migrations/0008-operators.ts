import { type Kysely, sql } from 'kysely'

/** What a person may decide about, and whether they may still come in. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // A null list of types is all of them: who is there today keeps what they may.
  await sql`alter table operator
    add column max_risk text not null default 'critical'
      check (max_risk in ('none', 'low', 'medium', 'high', 'critical')),
    add column incident_types jsonb check (jsonb_typeof(incident_types) = 'array'),
    add column disabled_at timestamptz`.execute(db)
}
