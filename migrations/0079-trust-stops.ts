import { type Kysely, sql } from 'kysely'

/**
 * Records kinds of writes that people stopped for the whole installation: in incidents of a type,
 * by one tool or all tools, on one resource or all resources. A stop lasts until somebody resumes
 * the writes, or until its time is over. The reason is in the audit entry of the stop's
 * transaction.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table trust_stop (
      id text primary key,
      tx xid8 not null default pg_current_xact_id(),
      at timestamptz not null default nightshift_now(),
      incident_type text not null,
      tool text,
      resource_kind text,
      resource_id text,
      until timestamptz,
      set_by text not null references operator (id),
      ended_at timestamptz,
      ended_by text references operator (id),
      check ((resource_kind is null) = (resource_id is null)),
      check ((ended_at is null) = (ended_by is null)),
      check (until > at)
    )`.execute(db)
  await sql`create index trust_stop_standing on trust_stop (at) where ended_at is null`.execute(db)
  await sql`
    create trigger trust_stop_change after insert or update or delete on trust_stop
    for each row execute function note_row_change('id', '', '{}')`.execute(db)
  await sql`
    create trigger trust_stop_ended before update on trust_stop
    for each row when (old.ended_at is not null) execute function refuse_change()`.execute(db)
  await sql`revoke all on trust_stop from nightshift_app`.execute(db)
  await sql`grant select on trust_stop to nightshift_app`.execute(db)
  // The database itself sets the row's time and transaction.
  await sql`
    grant insert (id, incident_type, tool, resource_kind, resource_id, until, set_by), update (ended_at, ended_by)
    on trust_stop to nightshift_app`.execute(db)
}
