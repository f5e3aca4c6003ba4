import { type Kysely, sql } from 'kysely'

/** Gives the window that a refusal named its own time, so that it is forgotten like anything else that is learned of a server. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table model_profile add column refused_at timestamptz`.execute(db)
  await sql`update model_profile set refused_at = nightshift_now() where refused_window is not null`.execute(db)
}
