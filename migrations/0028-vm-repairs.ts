import { type Kysely, sql } from 'kysely'

/** Repairs of a VM where it is: stop and restart in the journal of Proxmox VE; what a platform tells of a VM's run, where it does. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table platform_effect drop constraint platform_effect_action_check`.execute(db)
  await sql`
    alter table platform_effect add constraint platform_effect_action_check
      check (action in ('start', 'migrate', 'await', 'stop', 'restart'))`.execute(db)
  await sql`alter table vm add column started_at timestamptz, add column busy text`.execute(db)
}
