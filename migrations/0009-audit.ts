import { type Kysely, sql } from 'kysely'

/**
 * Creates the audit, which records what people did that has no row elsewhere: tokens, people,
 * sign-ins. Append-only like the log.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table audit (
      id bigint generated always as identity primary key,
      at timestamptz not null default nightshift_now(),
      who text not null,
      what text not null check (what ~ '^[a-z_]+[.][a-z_]+$'),
      subject text not null,
      detail text not null,
      address text
    )`.execute(db)
  await sql`create index audit_newest on audit (at desc, id desc)`.execute(db)
  await sql`
    create trigger audit_append_only before update or delete on audit
    for each row execute function refuse_change()`.execute(db)
  await sql`
    create trigger audit_no_truncate before truncate on audit
    for each statement execute function refuse_change()`.execute(db)
  await sql`grant select, insert on audit to nightshift_app`.execute(db)
  await sql`grant usage on all sequences in schema public to nightshift_app`.execute(db)

  // Indexes for the audit, which reads these few rows from a log that is a thousand times as long.
  await sql`
    create index incident_event_audit on incident_event (at desc, id desc)
    where actor like 'user:%' or kind = 'security_event'`.execute(db)
  await sql`create index platform_config_revision_newest on platform_config_revision (at desc, id desc)`.execute(db)
}
