import { type Kysely, sql } from 'kysely'

/**
 * Binds a decision token to one verdict, and stores the outcome of its request with it. Tokens
 * created before have no verdict. They end with their approval, within a week.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table decision_token
      add column decision text check (decision in ('approve', 'deny')),
      add column request text,
      add column outcome jsonb`.execute(db)
}
