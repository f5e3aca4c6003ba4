import { sql } from 'kysely'
import { type InventoryKind, machineKinds, needingKinds, onceAlong } from '../../domain/kinds.ts'
import type {
  Disagreement,
  ListedRelation,
  ListedResource,
  ResourceSurroundings,
  ShownResource,
} from '../../domain/listed-resource.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { hasText, neighboursOf } from './resources.ts'

/** Reads the registry for people: resources with their sources and relations. */

const staleAfter = sql`interval '1 day'`

type Filter = {
  kind: InventoryKind | null
  q: string | null
  isStale: boolean | null
  /**
   * `needs`: lists only resources that need this one. `neededBy`: only those that this one needs.
   */
  needs?: ResourceRef | null
  neededBy?: ResourceRef | null
}

/** Lists resources by kind and id, beginning after the key `after`. */
export async function listResources(
  { db }: Scope,
  filter: Filter,
  page: { after: string | null; limit: number },
): Promise<ListedResource[]> {
  const found = filter.q === null ? null : await findFewByText(db, filter.q)
  if (found?.length === 0) return []
  // Reads each resource by its key and then sorts the result, because the planner would otherwise
  // read the list in order again.
  const listed = found
    ? sql`(select one.* from jsonb_to_recordset(${JSON.stringify(found)}::jsonb) as found (kind text, id text)
        cross join lateral (select * from resource where kind = found.kind and id = found.id offset 0) one offset 0)`
    : sql`resource`
  const staleSince = sql`(select nightshift_now()) - ${staleAfter}`
  const { rows } = await sql<ListedResource>`
    select resource.kind, resource.id, resource.name, resource.canonical,
      array(select name from unnest(resource.names) name where name not in (lower(resource.id), lower(resource.name)) order by 1)
        as aliases,
      said.sources, said."seenAt", said."seenAt" < ${staleSince} as "isStale"
    from ${listed} resource cross join lateral (
      select array_agg(source order by source) as sources, max(seen_at) as "seenAt"
      from resource_source where resource_source.kind = resource.kind and resource_source.id = resource.id
    ) said
    where said."seenAt" is not null
      and (${filter.kind}::text is null or resource.kind = ${filter.kind})
      and ${filter.q === null || found ? sql`true` : hasText(filter.q)}
      and (${page.after}::text is null or resource.kind || ':' || resource.id > ${page.after} collate "C")
      and (${filter.isStale}::boolean is null or (said."seenAt" < ${staleSince}) = ${filter.isStale})
      and ${filter.needs ? isRelated('from', filter.needs) : sql`true`}
      and ${filter.neededBy ? isRelated('to', filter.neededBy) : sql`true`}
    order by (resource.kind || ':' || resource.id) collate "C" limit ${page.limit}`.execute(db)
  return rows
}

const maxFew = 1_000
/** The index of texts works only for three or more letters. */
const minIndexedCharacters = 3

/**
 * Finds resources with this text by the index, if there are only a few. For a rare text the planner
 * would read the whole list in order. Null if there are many: reading in order then soon finds the
 * first resources.
 */
async function findFewByText(db: Db, text: string): Promise<{ kind: string; id: string }[] | null> {
  if (text.length < minIndexedCharacters) return null
  const { rows } = await sql<{ kind: string; id: string }>`
    select kind, id from resource where ${hasText(text)} limit ${maxFew + 1}`.execute(db)
  return rows.length > maxFew ? null : rows
}

/**
 * Whether the resource of the row is at this end of a dependency, and the other resource at the
 * other end.
 */
function isRelated(end: 'from' | 'to', { kind, id }: ResourceRef) {
  const other = end === 'from' ? sql`(to_kind, to_id)` : sql`(from_kind, from_id)`
  return sql<boolean>`(resource.kind, resource.id) in (
    select ${end === 'from' ? sql`from_kind, from_id` : sql`to_kind, to_id`} from relation
    where ${other} = (${kind}, ${id}) and kind = any(${[...needingKinds]}::text[]))`
}

/**
 * Reads a resource with its sources, relations, firing alerts and incidents. Null if no source
 * lists it.
 */
export async function showResource(
  { db }: Scope,
  { kind, id }: ResourceRef,
): Promise<Omit<ShownResource, 'state'> | null> {
  const { rows } = await sql<Omit<ShownResource, 'relations' | 'alerts' | 'incidents' | 'acts' | 'sameAs' | 'state'>>`
    select resource.kind, resource.id, resource.name, resource.canonical, resource.first_seen_at as "firstSeenAt",
      array(select name from unnest(resource.names) name where name not in (lower(resource.id), lower(resource.name)) order by 1)
        as aliases,
      array_agg(said.source order by said.source) as sources, max(said.seen_at) as "seenAt",
      max(said.seen_at) < nightshift_now() - ${staleAfter} as "isStale",
      jsonb_agg(jsonb_build_object('source', said.source, 'name', said.name, 'attributes', said.attributes,
        'seenAt', to_char(said.seen_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) order by said.source) as said
    from resource join resource_source said on said.kind = resource.kind and said.id = resource.id
    where resource.kind = ${kind} and resource.id = ${id}
    group by resource.kind, resource.id`.execute(db)
  const [found] = rows
  if (!found) return null
  const { rows: same } = await sql<{ key: string }>`
    select kind || ':' || id as key from resource
    where canonical = ${found.canonical} and (kind, id) <> (${kind}, ${id}) order by 1`.execute(db)
  return {
    ...found,
    sameAs: same.map(({ key }) => key),
    relations: await relationsOf(db, { kind, id }),
    disagreements: await disagreementsOf(db, { kind, id }),
    neighbours: (await neighboursOf(db, { kind, id })).length,
    ...(await whatHappened(db, { kind, id })),
  }
}

const maxRelations = 200

/** Lists the relations of a resource in both directions, with their sources. */
export async function relationsOf(db: Db | Trx, { kind, id }: ResourceRef): Promise<ListedRelation[]> {
  const { rows } = await sql<ListedRelation>`
    select from_kind || ':' || from_id as from, relation.kind, to_kind || ':' || to_id as to, source, has_authority as "hasAuthority"
    from relation join registry_source using (source)
    where (from_kind, from_id) = (${kind}, ${id}) or (to_kind, to_id) = (${kind}, ${id})
    order by relation.kind, 1, 3, source limit ${maxRelations}`.execute(db)
  return rows
}

const maxValues = 200

/**
 * Finds relations for which sources give several values although only one can be true: the host of
 * the resource, its group, and the machine that it is, along any chain of names.
 */
async function disagreementsOf(db: Db, { kind, id }: ResourceRef): Promise<Disagreement[]> {
  const once = needingKinds.flatMap((relation) =>
    onceAlong(kind as InventoryKind, relation).map((to) => ({ relation, to })),
  )
  const { rows } = await sql<{ relation: Disagreement['relation']; toKind: string } & Disagreement['values'][number]>`
    with own as (
      select relation.kind as relation, to_kind, to_id, source from relation
        join jsonb_to_recordset(${JSON.stringify(once)}::jsonb) as once (relation text, "to" text)
          on once.relation = relation.kind and once."to" = relation.to_kind
      where (from_kind, from_id) = (${kind}, ${id})
    ), machine as (
      select same.kind, same.id from resource me join resource same using (lease_key)
      where me.kind = ${kind} and me.id = ${id} and same.kind = any(${[...machineKinds]}::text[])
    ), named as (
      select 'same_as' as relation, machine.kind as to_kind, machine.id as to_id, source from machine
        join relation on relation.kind = 'same_as' and (to_kind, to_id) = (machine.kind, machine.id)
      union
      select 'same_as', machine.kind, machine.id, source from machine
        join relation on relation.kind = 'same_as' and (from_kind, from_id) = (machine.kind, machine.id)
    ), said as (
      select *, min(to_id) over of_kind <> max(to_id) over of_kind as "isMoot"
      from (select relation, to_kind, to_id, source from own union select relation, to_kind, to_id, source from named) every
      window of_kind as (partition by relation, to_kind)
    )
    select relation, to_kind as "toKind", to_kind || ':' || to_id as to, source, seen_at as "seenAt"
    from said join registry_source using (source) where "isMoot"
    order by 1, 2, 3, 4 limit ${maxValues}`.execute(db)
  const groups = Map.groupBy(rows, ({ relation, toKind }) => `${relation} ${toKind}`)
  return [...groups.values()].map((values) => ({
    relation: values[0]?.relation as Disagreement['relation'],
    values: values.map(({ to, source, seenAt }) => ({ to, source, seenAt })),
  }))
}

const maxNear = 12

/**
 * Lists the resources that a resource needs, and the resources that need it: at most a dozen each,
 * resources with firing alerts first, and the total.
 */
export async function surroundingsOf({ db }: Scope, { kind, id }: ResourceRef): Promise<ResourceSurroundings> {
  const { rows } = await sql<{
    side: 'needs' | 'neededBy'
    key: string
    relation: (typeof needingKinds)[number]
    firing: number
    total: number
  }>`
    with near as (
      select 'needs' as side, to_kind as kind, to_id as id, min(relation.kind) as relation from relation
      where (from_kind, from_id) = (${kind}, ${id}) and kind = any(${[...needingKinds]}::text[]) group by 2, 3
      union all
      select 'neededBy', from_kind, from_id, min(relation.kind) from relation
      where (to_kind, to_id) = (${kind}, ${id}) and kind = any(${[...needingKinds]}::text[]) group by 2, 3
    ), firing as (
      select resource_kind as kind, resource_id as id, count(*)::int as count
      from alert join incident on incident.id = alert.incident_id where alert.status = 'firing' group by 1, 2
    ), ranked as (
      select side, near.kind || ':' || near.id as key, relation, coalesce(firing.count, 0) as firing,
        count(*) over (partition by side)::int as total,
        row_number() over (partition by side order by coalesce(firing.count, 0) desc, near.kind, near.id) as place
      from near left join firing on firing.kind = near.kind and firing.id = near.id
    )
    select side, key, relation, firing, total from ranked where place <= ${maxNear} order by side, place`.execute(db)
  const of = (wanted: string) => {
    const own = rows.filter(({ side }) => side === wanted)
    const items = own.map(({ key, relation, firing }) => ({ key, relation, firing }))
    return { items, total: own[0]?.total ?? 0 }
  }
  return { needs: of('needs'), neededBy: of('neededBy') }
}

async function whatHappened(
  db: Db,
  { kind, id }: ResourceRef,
): Promise<Pick<ShownResource, 'alerts' | 'incidents' | 'acts'>> {
  const incidents = await db
    .selectFrom('incident')
    .select(['id', 'title', 'status', 'createdAt'])
    .where('resourceKind', '=', kind)
    .where('resourceId', '=', id)
    .orderBy('createdAt', 'desc')
    .limit(20)
    .execute()
  const alerts = await db
    .selectFrom('alert')
    .innerJoin('incident', 'incident.id', 'alert.incidentId')
    .select(['alert.name', 'alert.status', 'alert.startsAt', 'alert.incidentId'])
    .where('incident.resourceKind', '=', kind)
    .where('incident.resourceId', '=', id)
    .where('alert.status', 'in', ['firing', 'unknown'])
    .orderBy('alert.startsAt', 'desc')
    .limit(20)
    .execute()
  return { incidents, alerts, acts: await actsOf(db, { kind, id }) }
}

/**
 * Lists people's actions on a resource: actions of low risk from the audit log, all others from
 * their incidents.
 */
async function actsOf(db: Db, ref: ResourceRef): Promise<ShownResource['acts']> {
  const { rows } = await sql<ShownResource['acts'][number]>`
    select * from (
      (select at, who, detail as did, null as "incidentId" from audit
        where what = 'platform.acted' and ${resourceKey(ref)} = any(string_to_array(subject, ', ')) order by id desc limit 20)
      union all
      (select at, metadata->>'name', substr(detail, length(metadata->>'name') + 2), incident_id from incident_event
        where kind = 'change_requested' and metadata->'targets' @> ${JSON.stringify([ref])}::jsonb order by id desc limit 20)
    ) act order by at desc limit 20`.execute(db)
  return rows
}
