import { type Kysely, sql } from 'kysely'

/**
 * Adds the RAM and CPU that a host reserves for itself and does not give to VMs, if its platform
 * reports them. Null: the reserve that is set for all hosts applies.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table host
      add column ram_reserve_mib integer check (ram_reserve_mib >= 0),
      add column cpu_reserve_mc integer check (cpu_reserve_mc >= 0)`.execute(db)
}
