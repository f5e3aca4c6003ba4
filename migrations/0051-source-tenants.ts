import { type Kysely, sql } from 'kysely'

/**
 * Adds headers to a source (for example the tenant whose data is read), how its credential is sent,
 * and the client certificate.
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
