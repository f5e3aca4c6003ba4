import { type Kysely, sql } from 'kysely'

/**
 * Adds the proof that no other choice of VMs that stay down does less harm. Null if there is no
 * proof, or if an older release made the plan.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table proposal add column triage jsonb`.execute(db)
}
