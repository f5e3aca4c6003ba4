import { type Kysely, sql } from 'kysely'

/**
 * `alert.end_reason`: the sender's word for an end that proves nothing (`MissingSeries`, `Paused`);
 * null for a normal end. An alert with an end reason is quiet but not proven to be over.
 * `alert.state_word`: the newest state that the sender reported and that Nightshift does not know.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table alert add column end_reason text, add column state_word text`.execute(db)
  await sql`
    alter table alert drop constraint alert_unknown_why_check,
      add constraint alert_unknown_why_check check (unknown_why in ('crowd', 'stale', 'foreign', 'unproven'))`.execute(
    db,
  )
  await sql`grant update (end_reason, state_word) on alert to nightshift_app`.execute(db)
  await sql`create index alert_unproven on alert (unknown_since) where unknown_why = 'unproven'`.execute(db)
  const alertColumns = 'status, ends_at, end_received_at, unknown_since, unknown_why, ended_by, end_reason'
  await sql`drop trigger alert_change on alert`.execute(db)
  await sql
    .raw(
      `create trigger alert_change after update of ${alertColumns} on alert
      for each row execute function note_row_change('id', '{${alertColumns.replaceAll(' ', '')}}', '{}')`,
    )
    .execute(db)
}
