import { type Kysely, sql } from 'kysely'

/**
 * Separates resources that were wrongly merged: two nodes, VMs or hosts are never one resource.
 * Separated resources still share the key of their leases, by which names are found. Turns
 * `fastupdate` off for the index of texts: texts that waited to be sorted into the index were read
 * at each search, so the planner preferred to read the whole list.
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
