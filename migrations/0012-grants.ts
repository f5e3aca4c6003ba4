import { type Kysely, sql } from 'kysely'

/**
 * Creates standing grants. A standing grant is an approval that counts more than once: for exactly
 * this action, a limited number of times, until a time.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table standing_grant (
      id text primary key,
      approval_id text not null references approval (id),
      tool text not null,
      action_digest text not null,
      state_fingerprint text not null,
      targets jsonb not null,
      uses integer not null check (uses between 1 and 20),
      uses_left integer not null check (uses_left between 0 and uses),
      granted_by text not null references operator (id),
      granted_at timestamptz not null default nightshift_now(),
      expires_at timestamptz not null,
      revoked_at timestamptz,
      check (expires_at <= granted_at + interval '8 hours')
    )`.execute(db)
  await sql`create index standing_grant_usable on standing_grant (tool) where uses_left > 0 and revoked_at is null`.execute(
    db,
  )
  await sql`grant select, insert, update on standing_grant to nightshift_app`.execute(db)
}
