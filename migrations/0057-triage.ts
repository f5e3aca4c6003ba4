import { type Kysely, sql } from 'kysely'

/** What shows that no choice of who stays down is less harm; null: nothing does, or an older release made the plan. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table proposal add column triage jsonb`.execute(db)
}
