import { type Kysely, sql } from 'kysely'

/**
 * Two nodes, VMs or hosts are never one: names that made them so are taken apart. Leases go on sharing a key, by which names are found. Texts that waited
 * to be sorted into their index were read at each search, so that reading all of the list seemed cheaper.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    update resource set canonical = kind || ':' || id where canonical in (
      select canonical from resource where kind in ('vm', 'node', 'host') group by canonical, kind having count(*) > 1)`.execute(
    db,
  )
  await sql`create index resource_by_lease_key on resource (lease_key)`.execute(db)
  await sql`alter index resource_by_text set (fastupdate = off)`.execute(db)
  await sql`select gin_clean_pending_list('resource_by_text')`.execute(db)
}
