import { type Kysely, sql } from 'kysely'

/**
 * A decision token is for one verdict, and what its request came to is stored with it. Tokens minted before have no verdict:
 * they end with their approval, within a week.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table decision_token
      add column decision text check (decision in ('approve', 'deny')),
      add column request text,
      add column outcome jsonb`.execute(db)
}
