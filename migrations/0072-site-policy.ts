import { type Kysely, sql } from 'kysely'

/**
 * Creates the configured policies, as they were read from a repository or folder. One policy is in
 * force, and one may wait for an admin. The text of a policy never changes, because every policy
 * decision contains its digest.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table site_policy (
      id text primary key,
      digest text not null check (digest ~ '^[0-9a-f]{64}$'),
      place text not null,
      git_commit text,
      text text not null check (octet_length(text) <= 1048576),
      widens text[] not null default '{}',
      read_at timestamptz not null default nightshift_now(),
      status text not null check (status in ('waiting', 'in_force', 'past')),
      in_force_at timestamptz,
      accepted_by text references operator (id),
      check (status <> 'in_force' or in_force_at is not null and (accepted_by is not null or widens = '{}'))
    )`.execute(db)
  await sql`create unique index site_policy_one on site_policy (status) where status <> 'past'`.execute(db)
  await sql`create index site_policy_digest on site_policy (digest)`.execute(db)
  await sql`
    create trigger site_policy_change after insert or update or delete on site_policy
    for each row execute function note_row_change('id', '', '{text}')`.execute(db)
  await sql`
    create trigger site_policy_past before update on site_policy
    for each row when (old.status = 'past') execute function refuse_change()`.execute(db)
  await sql`revoke all on site_policy from nightshift_app`.execute(db)
  await sql`
    grant select, insert, update (status, in_force_at, accepted_by) on site_policy to nightshift_app`.execute(db)

  // The result of the last reading, in one row: the reasons why a policy could not be accepted.
  await sql`
    create table site_policy_reading (
      only_row boolean primary key default true check (only_row),
      read_at timestamptz not null,
      digest text,
      faults jsonb not null default '[]'
    )`.execute(db)
  await sql`grant select, insert, update on site_policy_reading to nightshift_app`.execute(db)
}
