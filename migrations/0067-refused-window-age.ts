import { type Kysely, sql } from 'kysely'

/**
 * Records when a refusal named the context window, so that this fact expires like all facts that
 * were learned about a server.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table model_profile add column refused_at timestamptz`.execute(db)
  await sql`update model_profile set refused_at = nightshift_now() where refused_window is not null`.execute(db)
}
