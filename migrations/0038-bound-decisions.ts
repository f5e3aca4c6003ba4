import { type Kysely, sql } from 'kysely'

/**
 * Binds a decision token to the whole decision that its person made: `binds` is the digest of
 * verdict, reason, category, arguments and grant. A token for Temporal has no `binds`, and contains
 * only the verdict. A token from before this migration has no purpose, and also contains only the
 * verdict.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table decision_token
      add column purpose text check (purpose in ('decision', 'temporal')),
      add column binds text,
      add check (purpose is distinct from 'decision' or binds is not null)`.execute(db)
}
