import { type Kysely, sql } from 'kysely'

/**
 * Adds to a source: headers (for example with the tenant whose data is read), the way in which its
 * credential is sent, and a client certificate.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table source
      add column headers jsonb not null default '{}',
      add column scheme text check (scheme in ('Bearer', 'Basic', 'ApiKey', 'Token')),
      add column cert_file text,
      add column key_file text,
      add constraint source_certificate check ((cert_file is null) = (key_file is null))`.execute(db)
}
