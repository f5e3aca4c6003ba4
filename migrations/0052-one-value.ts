import { type Kysely, sql } from 'kysely'

/** Two nodes, VMs or hosts are never one: names that made them so are taken apart. Leases go on sharing a key, by which names are found. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    update resource set canonical = kind || ':' || id where canonical in (
      select canonical from resource where kind in ('vm', 'node', 'host') group by canonical, kind having count(*) > 1)`.execute(
    db,
  )
  await sql`create index resource_by_lease_key on resource (lease_key)`.execute(db)
}
