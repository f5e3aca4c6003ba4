import { type Kysely, sql } from 'kysely'

/**
 * Adds four things. `credential_address`: the servers to which a source's credential may be sent.
 * `reference`: the file or variable that contains the credential. `alert.sender`: the sender whose
 * token opened the alert. `alert.ended_by`: the sender whose token ended the alert, if it is not
 * `alert.sender`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table credential_address (
      reference text not null,
      address text not null,
      given_at timestamptz not null default clock_timestamp(),
      primary key (reference, address))`.execute(db)
  await sql`grant select, insert on credential_address to nightshift_app`.execute(db)
  await sql`
    insert into credential_address (reference, address)
    select distinct credential, regexp_replace(regexp_replace(lower(substring(url from '^https?://[^/?#]+')), '^(http://.*):80$', '\\1'),
      '^(https://.*):443$', '\\1')
    from source where credential is not null`.execute(db)
  await sql`alter table alert add column sender text, add column ended_by text`.execute(db)
  await sql`
    alter table alert drop constraint alert_unknown_why_check,
      add constraint alert_unknown_why_check check (unknown_why in ('crowd', 'stale', 'foreign'))`.execute(db)
  await sql`grant update (ended_by) on alert to nightshift_app`.execute(db)
  // The database itself records changes of `credential_address`, like all changes that grant
  // authority (0040).
  await sql`
    create trigger credential_address_change after insert or update or delete on credential_address
    for each row execute function note_row_change('reference', '', '{}')`.execute(db)
  const alertColumns = 'status, ends_at, end_received_at, unknown_since, unknown_why, ended_by'
  await sql`drop trigger alert_change on alert`.execute(db)
  await sql
    .raw(
      `create trigger alert_change after update of ${alertColumns} on alert
      for each row execute function note_row_change('id', '{${alertColumns.replaceAll(' ', '')}}', '{}')`,
    )
    .execute(db)
}
