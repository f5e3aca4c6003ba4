import { type Kysely, sql } from 'kysely'

/**
 * Adds stop and restart of a VM to the journal of Proxmox VE, and what a platform reports about a
 * VM's process.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table platform_effect drop constraint platform_effect_action_check`.execute(db)
  await sql`
    alter table platform_effect add constraint platform_effect_action_check
      check (action in ('start', 'migrate', 'await', 'stop', 'restart'))`.execute(db)
  await sql`alter table vm add column started_at timestamptz, add column busy text`.execute(db)
}
