import { type RawBuilder, sql } from 'kysely'
import type { KnownResource } from '../../domain/alert-resource.ts'
import { type RegistrySource, refuseWithoutAuthority, type SourceDeclaration } from '../../domain/declared-resources.ts'
import { sha256 } from '../../domain/digest.ts'
import { runsExportersAttribute } from '../../domain/exporter-hosts.ts'
import { type InventoryKind, machineKinds } from '../../domain/kinds.ts'
import { keysOfGroups, keysOfThings, type ResourceRef, resourceKey, toMatchedNames } from '../../domain/registry.ts'
import { cleanse } from '../../safety/redact.ts'
import { databaseTime, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'

/**
 * Reports the progress of storing a long list: the current step, the number of finished entries,
 * and the number of all entries.
 */
export type ImportProgress = (step: string, done: number, total: number) => void

/** Maximum number of entries in one statement. */
const sliceSize = 5_000

/** Seconds after which the last-seen time of an unchanged list is stored again. */
const touchAfterSeconds = 3_600

/**
 * Stores the whole list of one source in the registry. An entry that is missing from the list is
 * removed, unless another source lists the entry. Unchanged rows are not written, and an unchanged
 * list costs one query. Returns whether anything changed.
 */
export async function declareResources(
  trx: Trx,
  source: RegistrySource,
  received: SourceDeclaration,
  onProgress: ImportProgress = () => {},
): Promise<boolean> {
  refuseWithoutAuthority(source, received)
  // Computes the digest of the list as received. Removing secrets from a long list takes seconds,
  // and most lists are unchanged.
  const digest = sha256(JSON.stringify(received))
  await sql`select pg_advisory_xact_lock(hashtextextended('registry', 0))`.execute(trx)
  const before = await trx
    .selectFrom('registrySource')
    .select(['digest', 'relationsDigest', 'seenAt'])
    .where('source', '=', source.name)
    .executeTakeFirst()
  if (before?.digest === digest) {
    await touch(trx, source.name, before.seenAt)
    return false
  }
  const declared = cleanse(received)
  const relationsDigest = sha256(JSON.stringify(received.relations))
  const said = { hasAuthority: source.hasAuthority, digest, relationsDigest }
  await trx
    .insertInto('registrySource')
    .values({ source: source.name, ...said })
    .onConflict((on) => on.column('source').doUpdateSet({ ...said, seenAt: now }))
    .execute()
  const changed = await mergeResources(trx, source.name, declared.resources, onProgress)
  for (const keys of slicesOf(changed)) await foldResources(trx, keys)
  // Compares relations separately, because attributes change often but relations seldom.
  const isRelatedAsBefore = before?.relationsDigest === relationsDigest
  const isRenamed = !isRelatedAsBefore && (await mergeRelations(trx, source.name, declared.relations, onProgress))
  if (isRenamed || changed.length > 0) await unify(trx)
  return true
}

/** Records that a source lists what it listed before. */
export async function touchSource(trx: Trx, { name }: RegistrySource): Promise<void> {
  const before = await trx.selectFrom('registrySource').select('seenAt').where('source', '=', name).executeTakeFirst()
  if (before) await touch(trx, name, before.seenAt)
}

async function touch(trx: Trx, source: string, seenAt: string): Promise<void> {
  const age = Date.parse(await databaseTime(trx)) - Date.parse(seenAt)
  if (age < touchAfterSeconds * 1000) return
  await trx.updateTable('registrySource').set({ seenAt: now }).where('source', '=', source).execute()
  await trx.updateTable('resourceSource').set({ seenAt: now }).where('source', '=', source).execute()
}

type Key = { kind: InventoryKind; id: string }

function* slicesOf<T>(list: readonly T[], step = '', onProgress: ImportProgress = () => {}): Generator<T[]> {
  for (let from = 0; from < list.length; from += sliceSize) {
    onProgress(step, from, list.length)
    yield list.slice(from, from + sliceSize)
  }
}

/** Writes and removes rows of the source's resources. Returns their keys. */
async function mergeResources(
  trx: Trx,
  source: string,
  resources: SourceDeclaration['resources'],
  onProgress: ImportProgress,
): Promise<Key[]> {
  const rows = resources.map(({ kind, id, name = id, aliases = [], attributes = {} }) => ({
    kind,
    id,
    name,
    aliases,
    attributes,
    names: toMatchedNames({ id, name, aliases }),
  }))
  const written: Key[] = []
  for (const slice of slicesOf(rows, 'resources', onProgress))
    written.push(...(await writeResources(trx, source, slice)))
  const { rows: removed } = await sql<Key>`
    delete from resource_source
    where source = ${source} and not exists (
      select from jsonb_to_recordset(${JSON.stringify(resources.map(({ kind, id }) => ({ kind, id })))}::jsonb)
        as declared (kind text, id text)
      where declared.kind = resource_source.kind and declared.id = resource_source.id)
    returning kind, id`.execute(trx)
  return [...written, ...removed]
}

async function writeResources(trx: Trx, source: string, rows: readonly object[]): Promise<Key[]> {
  const { rows: written } = await sql<Key>`
    insert into resource_source (kind, id, source, name, aliases, names, attributes)
    select kind, id, ${source}, name, aliases, names, attributes
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
      as declared (kind text, id text, name text, aliases text[], names text[], attributes jsonb)
    on conflict (source, kind, id) do update
      set name = excluded.name, aliases = excluded.aliases, names = excluded.names, attributes = excluded.attributes,
          seen_at = nightshift_now()
      where (resource_source.name, resource_source.aliases, resource_source.names, resource_source.attributes)
        is distinct from (excluded.name, excluded.aliases, excluded.names, excluded.attributes)
    returning kind, id`.execute(trx)
  return written
}

/**
 * Writes these resources as all their sources together describe them. Removes resources without a
 * source.
 */
async function foldResources(trx: Trx, keys: readonly Key[]): Promise<void> {
  if (keys.length === 0) return
  const changed = JSON.stringify(keys)
  await sql`
    insert into resource (kind, id, name, names, canonical, lease_key)
    select said.kind, said.id,
      (array_agg(said.name order by teller.has_authority desc, said.source))[1],
      (select array_agg(distinct name) from unnest(string_to_array(string_agg(array_to_string(said.names, E'\n'), E'\n'), E'\n')) name),
      said.kind || ':' || said.id, said.kind || ':' || said.id
    from resource_source said
      join registry_source teller using (source)
      join jsonb_to_recordset(${changed}::jsonb) as changed (kind text, id text)
        on changed.kind = said.kind and changed.id = said.id
    group by said.kind, said.id
    on conflict (kind, id) do update set name = excluded.name, names = excluded.names
      where (resource.name, resource.names) is distinct from (excluded.name, excluded.names)`.execute(trx)
  await sql`
    delete from resource using jsonb_to_recordset(${changed}::jsonb) as changed (kind text, id text)
    where resource.kind = changed.kind and resource.id = changed.id and not exists (
      select from resource_source said where said.kind = resource.kind and said.id = resource.id)`.execute(trx)
}

/** Returns whether the names of a resource changed. */
async function mergeRelations(
  trx: Trx,
  source: string,
  relations: SourceDeclaration['relations'],
  onProgress: ImportProgress,
): Promise<boolean> {
  const rows = relations.map(({ from, kind, to }) => ({
    from_kind: from.kind,
    from_id: from.id,
    kind,
    to_kind: to.kind,
    to_id: to.id,
  }))
  const columns = sql`(from_kind text, from_id text, kind text, to_kind text, to_id text)`
  const added: { kind: string }[] = []
  for (const slice of slicesOf(rows, 'relations', onProgress)) {
    const written = await sql<{ kind: string }>`
      insert into relation (from_kind, from_id, kind, to_kind, to_id, source)
      select distinct from_kind, from_id, kind, to_kind, to_id, ${source}
      from jsonb_to_recordset(${JSON.stringify(slice)}::jsonb) as declared ${columns}
      on conflict do nothing
      returning kind`.execute(trx)
    added.push(...written.rows)
  }
  const { rows: removed } = await sql<{ kind: string }>`
    delete from relation
    where source = ${source} and not exists (
      select from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as declared ${columns}
      where (declared.from_kind, declared.from_id, declared.kind, declared.to_kind, declared.to_id)
        = (relation.from_kind, relation.from_id, relation.kind, relation.to_kind, relation.to_id))
    returning kind`.execute(trx)
  return [...added, ...removed].some(({ kind }) => kind === 'same_as')
}

/**
 * Gives all names of a resource one key. `canonical` follows only sources with authority.
 * `lease_key` follows every source, because a shared key only adds a lease and allows nothing. If
 * sources without authority join two machines, only leases treat the machines as one.
 */
async function unify(trx: Trx): Promise<void> {
  const { rows } = await sql<{ left: string; right: string; hasAuthority: boolean }>`
    select from_kind || ':' || from_id as left, to_kind || ':' || to_id as right, has_authority as "hasAuthority"
    from relation join registry_source using (source) where kind = 'same_as'`.execute(trx)
  const canonical = keysOfThings(rows.filter(({ hasAuthority }) => hasAuthority))
  const leases = keysOfGroups(rows)
  const keys = [...leases.keys()].map((key) => ({
    key,
    canonical: canonical.get(key) ?? key,
    lease: leases.get(key) ?? key,
  }))
  await sql`
    update resource set canonical = coalesce(grouped.canonical, own.key), lease_key = coalesce(grouped.lease, own.key)
    from (select kind, id, kind || ':' || id as key from resource) own
      left join jsonb_to_recordset(${JSON.stringify(keys)}::jsonb) as grouped (key text, canonical text, lease text)
        on grouped.key = own.key
    where resource.kind = own.kind and resource.id = own.id
      and (resource.canonical, resource.lease_key)
        is distinct from (coalesce(grouped.canonical, own.key), coalesce(grouped.lease, own.key))`.execute(trx)
}

const exporterMark = JSON.stringify({ [runsExportersAttribute]: true })

/**
 * Selects the parents of a row. `offset 0` makes PostgreSQL look up the parents of each row: the
 * planner misjudges rows that are found by name and would read all relations.
 */
const upwards = (row: RawBuilder<unknown>) => sql`(
  select to_kind, to_id from relation
  where from_kind = ${row}.kind and from_id = ${row}.id and kind in ('belongs_to', 'runs_on') offset 0)`

/**
 * Whether an inventory, or the targets that are scraped on a machine, show that exporters on it
 * measure other machines. Without `offset 0` PostgreSQL first hashes the attributes of every
 * resource.
 */
const runsExporters = sql`(found.kind = any(${[...machineKinds]}::text[]) and (exists (
    select from resource_source said join registry_source using (source)
    where said.kind = found.kind and said.id = found.id and has_authority and said.attributes @> ${exporterMark}::jsonb offset 0)
  or exists (
    select from relation join resource_source target
      on target.source = relation.source and target.kind = relation.from_kind and target.id = relation.from_id
    where relation.to_kind = found.kind and relation.to_id = found.id and relation.kind = 'same_as'
      and relation.from_kind = 'target' and target.attributes @> ${exporterMark}::jsonb offset 0)))`

/** Finds resources with any of these names, and all resources up to three steps above them. */
export async function findByNames(db: Db | Trx, names: readonly string[]): Promise<KnownResource[]> {
  if (names.length === 0) return []
  const wanted = [...new Set(names)]
  const { rows } = await sql<KnownResource>`
    with recursive member as (
      select id, array_agg(name) as names from (
        select distinct on (source, namespace, name) workload as id, name from cluster_member
        where name = any(${wanted}::text[]) order by source, namespace, name, gone_at desc nulls first) newest
      group by id
    ), found as (
      select kind, id, names, canonical from resource
      where names && ${wanted}::text[] and not (kind = 'workload' and id in (select id from member))
      union all
      select kind, id, resource.names || member.names, canonical from member join resource using (id) where kind = 'workload'
    ), above as (
      select found.kind as start_kind, found.id as start_id, relation.to_kind as kind, relation.to_id as id, 1 as steps
      from found cross join lateral ${upwards(sql`found`)} relation
      union
      select above.start_kind, above.start_id, relation.to_kind, relation.to_id, above.steps + 1
      from above cross join lateral ${upwards(sql`above`)} relation
      where above.steps < 3
    )
    select found.kind, found.id, found.names, found.canonical, ${runsExporters} as "runsExporters", coalesce((
      select jsonb_agg(jsonb_build_object('kind', parent.kind, 'id', parent.id, 'names', parent.names))
      from above join resource parent on parent.kind = above.kind and parent.id = above.id
      where above.start_kind = found.kind and above.start_id = found.id), '[]'::jsonb) as above
    from found order by found.kind, found.id`.execute(db)
  return rows
}

/** Returns the keys of these targets for leases: one key for all names of a resource. */
export async function leaseKeys(db: Db | Trx, targets: readonly ResourceRef[]): Promise<string[]> {
  return [...new Set((await leaseKeyByName(db, targets)).values())].sort()
}

/**
 * Maps each resource to its one key for leases and denials. An unknown resource keeps its own key.
 */
export async function leaseKeyByName(
  db: Db | Trx,
  targets: readonly ResourceRef[],
): Promise<ReadonlyMap<string, string>> {
  const own = [...new Set(targets.map(resourceKey))]
  if (own.length === 0) return new Map()
  const { rows } = await sql<{ key: string; leaseKey: string }>`
    select kind || ':' || id as key, lease_key as "leaseKey" from resource
    join jsonb_to_recordset(${JSON.stringify(targets.map(({ kind, id }) => ({ kind, id })))}::jsonb)
      as target (kind text, id text) using (kind, id)`.execute(db)
  const known = new Map(rows.map(({ key, leaseKey }) => [key, leaseKey]))
  return new Map(own.map((key) => [key, known.get(key) ?? key]))
}

/** Returns the other names of these resources, according to sources with authority. */
export async function otherNames(db: Db | Trx, refs: readonly ResourceRef[]): Promise<Map<string, ResourceRef[]>> {
  const others = new Map<string, ResourceRef[]>()
  if (refs.length === 0) return others
  const { rows } = await sql<{ key: string; kind: InventoryKind; id: string }>`
    select own.kind || ':' || own.id as key, other.kind, other.id
    from jsonb_to_recordset(${JSON.stringify(refs.map(({ kind, id }) => ({ kind, id })))}::jsonb) as wanted (kind text, id text)
      join resource own using (kind, id)
      join resource other on other.canonical = own.canonical and (other.kind, other.id) <> (own.kind, own.id)
    order by other.kind, other.id`.execute(db)
  for (const { key, kind, id } of rows) others.set(key, [...(others.get(key) ?? []), { kind, id }])
  return others
}

/** Finds a resource that at least one source lists; null if no source lists it. */
export async function registeredResource<K extends InventoryKind>(
  db: Db | Trx,
  { kind, id }: { kind: K; id: string },
): Promise<{ kind: K; id: string; name: string } | null> {
  const row = await db
    .selectFrom('resource')
    .select('name')
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where(({ exists, selectFrom }) =>
      exists(selectFrom('resourceSource').select('source').where('kind', '=', kind).where('id', '=', id)),
    )
    .executeTakeFirst()
  return row ? { kind, id, name: row.name } : null
}

/** Lists targets to which an incident other than this one is currently writing. */
export async function leasesOfOthers(db: Db | Trx, incidentId: string, targets: ResourceRef[]) {
  if (targets.length === 0) return []
  return await db
    .selectFrom('targetLease')
    .select(['target', sql<string>`coalesce(incident_id, 'a person')`.as('incidentId')])
    .where('target', 'in', await leaseKeys(db, targets))
    .where('incidentId', 'is distinct from', incidentId)
    .execute()
}
