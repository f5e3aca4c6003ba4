import { type Kysely, sql } from 'kysely'

/** Whose data a source is asked for, how its credential is sent, and the certificate that it is asked with. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table source
      add column headers jsonb not null default '{}',
      add column scheme text check (scheme in ('Bearer', 'Basic', 'ApiKey', 'Token')),
      add column cert_file text,
      add column key_file text,
      add constraint source_certificate check ((cert_file is null) = (key_file is null))`.execute(db)
}
