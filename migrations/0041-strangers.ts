import { type Kysely, sql } from 'kysely'

/** `credential_address`: which servers a credential of a source may be sent to. It is known as the file or variable that it is in. */
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
  // From now on each is told of by the audit, or `nightshift verify` says so.
  await sql`
    create trigger credential_address_change after insert on credential_address
    for each row execute function note_row_change('reference', '', '{}')`.execute(db)
}
