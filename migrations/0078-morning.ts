import { type Kysely, sql } from 'kysely'

/**
 * `question_wake`: whether a question at night used up a wake of the budget, or waits for the
 * morning; written once. `follow_up`: the work that remains after an incident ended as mitigated.
 * Each change of a follow-up is a row in the incident's log.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table question_wake (
      approval_id text primary key references approval (id) on delete cascade,
      wakes boolean not null,
      at timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`create index question_wake_at on question_wake (at)`.execute(db)
  await sql`revoke all on question_wake from nightshift_app`.execute(db)
  await sql`grant select, insert on question_wake to nightshift_app`.execute(db)
  await sql`
    create table follow_up (
      incident_id text primary key references incident (id) on delete cascade,
      owner_id text references operator (id),
      owner_group text,
      due_on date not null,
      created_at timestamptz not null default nightshift_now(),
      closed_at timestamptz,
      closed_by text references operator (id),
      check (owner_id is null or owner_group is null),
      check ((closed_at is null) = (closed_by is null))
    )`.execute(db)
  await sql`create index follow_up_open on follow_up (due_on) where closed_at is null`.execute(db)
  await sql`revoke all on follow_up from nightshift_app`.execute(db)
  await sql`
    grant select, insert, update (owner_id, owner_group, due_on, closed_at, closed_by) on follow_up to nightshift_app`.execute(
    db,
  )
}
