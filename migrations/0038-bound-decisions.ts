import { type Kysely, sql } from 'kysely'

/**
 * A decision token carries the whole decision that its person made: `binds` is the digest of verdict, reason, category, arguments and
 * grant. One for Temporal has none: it carries the verdict alone. Those of before have no purpose, and carry the verdict alone too.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table decision_token
      add column purpose text check (purpose in ('decision', 'temporal')),
      add column binds text,
      add check (purpose is distinct from 'decision' or binds is not null)`.execute(db)
}
