import { sql } from 'kysely'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Db } from '../connect.ts'

const maxSources = 3

/**
 * Finds sources of database servers for a resource: the server that the resource is, or the servers
 * that run on it; then their primaries and replicas. The resource of a server has the name of its
 * source.
 */
export async function databaseSourcesOf(db: Db, about: ResourceRef): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    with about as (select canonical from resource where kind = ${about.kind} and id = ${about.id}),
      same as (select kind, id from resource where canonical in (select canonical from about)),
      own as (
        select id, 0 as far from same where kind = 'database'
        union select r.from_id, 1 from relation r join same on (r.to_kind, r.to_id) = (same.kind, same.id)
          where r.from_kind = 'database' and r.kind in ('runs_on', 'belongs_to')),
      near as (
        select r.to_id as id, 2 as far from relation r where r.kind = 'depends_on' and r.from_kind = 'database' and r.to_kind = 'database' and r.from_id in (select id from own)
        union select r.from_id, 3 from relation r where r.kind = 'depends_on' and r.from_kind = 'database' and r.to_kind = 'database' and r.to_id in (select id from own))
    select source.name from (select id, min(far) as far from (select * from own union all select * from near) found group by id) each
      join source on source.name = each.id
    order by each.far, source.name limit ${maxSources}`.execute(db)
  return rows.map(({ name }) => name)
}
