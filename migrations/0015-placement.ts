import { type Kysely, sql } from 'kysely'

/**
 * Adds rules of VMs, and facts about the quality of a plan: its bound and the proof of the bound,
 * which VMs stay down and why, and which further failures the cluster survives afterwards.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table vm
      add column priority integer not null default 0,
      add column pinned_to jsonb not null default '[]',
      add column forbidden_hosts jsonb not null default '[]',
      add column affinity_group text`.execute(db)
  await sql`
    alter table proposal
      add column lower_bound integer not null default 0,
      add column proof jsonb not null default '{"kind": "trivial"}',
      add column unplaced jsonb not null default '[]',
      add column obstacle jsonb,
      add column from_inventory boolean not null default true,
      add column standing jsonb`.execute(db)
}
