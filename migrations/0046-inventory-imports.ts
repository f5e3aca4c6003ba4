import { type Kysely, sql } from 'kysely'

/**
 * `inventory_import`: the import of a large file into the inventory, with its progress and outcome.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table inventory_import (
      id text primary key,
      who text not null,
      is_dry_run boolean not null,
      entries integer not null,
      state text not null default 'running' check (state in ('running', 'done', 'failed')),
      step text not null default 'begins',
      done integer not null default 0,
      total integer not null default 0,
      change jsonb,
      faults jsonb,
      reason text,
      created_at timestamptz not null default nightshift_now(),
      seen_at timestamptz not null default nightshift_now(),
      ended_at timestamptz)`.execute(db)
  await sql`grant select, insert, update, delete on inventory_import to nightshift_app`.execute(db)
}
