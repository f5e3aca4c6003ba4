import { type Kysely, sql } from 'kysely'

/** What a host keeps for itself and lends to no VM, where its platform says it; null: the reserve of all hosts counts. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table host
      add column ram_reserve_mib integer check (ram_reserve_mib >= 0),
      add column cpu_reserve_mc integer check (cpu_reserve_mc >= 0)`.execute(db)
}
