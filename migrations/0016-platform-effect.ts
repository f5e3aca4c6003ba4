import { type Kysely, sql } from 'kysely'

/**
 * Records what was sent to a platform that keeps no journal (Proxmox VE). The row is written before
 * the request is sent, then the platform's task when it is known, then the outcome when it is
 * known.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table platform_effect (
      key text primary key,
      action text not null check (action in ('start', 'migrate', 'await')),
      vm_id text not null,
      node text not null,
      target text not null,
      tasks_before jsonb not null,
      task text,
      status text check (status in ('done', 'failed')),
      detail text,
      begun_at timestamptz not null default nightshift_now(),
      check ((status is null) = (detail is null))
    )`.execute(db)
  await sql`grant select, insert, update on platform_effect to nightshift_app`.execute(db)
}
