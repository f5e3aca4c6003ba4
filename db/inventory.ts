import { sql } from 'kysely'
import type { ResourceRule } from '../domain/alert.ts'
import { type AlertResource, chooseResource, namesToLookUp } from '../domain/alert-resource.ts'
import type { InventoryKind, Step } from '../domain/kinds.ts'
import type { Inventory } from '../domain/platform.ts'
import {
  type Declared,
  fileToDeclared,
  importSource,
  nearOf,
  platformSource,
  type ResourceKind,
  type ResourceRef,
  resourceKey,
  toDeclared,
} from '../domain/registry.ts'
import { findDeclarationFaults, type SiteChange, type SiteFile } from '../domain/site.ts'
import type { Discovered } from '../domain/tool.ts'
import { type Db, escapeLike, type Scope, type Trx } from './connect.ts'
import { declareResources, findByNames, otherNames } from './registry.ts'
import { readSite, writeSite } from './site.ts'

/** What each alert is about, as far as the registry knows it: a label alone makes nothing a target. One look-up for all. */
export async function findAlertResources(
  db: Db | Trx,
  alerts: readonly Record<string, string>[],
  rules: readonly ResourceRule[],
): Promise<AlertResource[]> {
  const known = await findByNames(db, [...new Set(alerts.flatMap((labels) => namesToLookUp(labels, rules)))])
  return alerts.map((labels) => chooseResource(labels, rules, known))
}

const typed = ['region', 'shard', 'node', 'tenant', 'host', 'vm'] as const
/** The platform's own tables hold its state; of other kinds the registry is all there is. */
const isTyped = (kind: string): kind is (typeof typed)[number] => (typed as readonly string[]).includes(kind)

export async function resourceById(db: Db | Trx, ref: ResourceRef): Promise<Record<string, unknown> | null> {
  if (ref.kind === 'incident' || ref.kind === 'proposal') return null
  if (isTyped(ref.kind)) {
    const row = await db.selectFrom(ref.kind).selectAll().where('id', '=', ref.id).executeTakeFirst()
    return row ?? null
  }
  const row = await db
    .selectFrom('resource')
    .select(['kind', 'id', 'name', 'names'])
    .where('kind', '=', ref.kind)
    .where('id', '=', ref.id)
    .executeTakeFirst()
  return row ?? null
}

/**
 * What belongs together with a resource, by its kind's descriptor, and its other names. Only relations that the platform or an
 * administrator told count: what is near may be written to unasked.
 */
export async function neighboursOf(db: Db | Trx, ref: ResourceRef): Promise<ResourceRef[]> {
  // Paths from one resource begin with the same steps: each is asked once.
  const asked = new Map<string, Promise<ResourceRef[]>>()
  return await nearOf(ref, {
    otherNames: async (one) => (await otherNames(db, [one])).get(resourceKey(one)) ?? [],
    stepFrom(from, step) {
      const key = JSON.stringify([from, step])
      const answer = asked.get(key) ?? stepFrom(db, from, step)
      asked.set(key, answer)
      return answer
    },
  })
}

async function stepFrom(db: Db | Trx, from: readonly ResourceRef[], step: Step): Promise<ResourceRef[]> {
  const [near, far] = step.go === 'out' ? (['from', 'to'] as const) : (['to', 'from'] as const)
  const ids = from.map(({ id }) => id)
  const { rows } = await sql<ResourceRef>`
    select distinct ${sql.ref(`relation.${far}_kind`)} as kind, ${sql.ref(`relation.${far}_id`)} as id
    from relation join registry_source using (source)
    where has_authority and relation.kind = ${step.along} and ${sql.ref(`relation.${near}_kind`)} = ${from[0]?.kind}
      and ${sql.ref(`relation.${near}_id`)} = any(${ids}) and ${sql.ref(`relation.${far}_kind`)} = ${step.to}
    order by 2`.execute(db)
  return rows
}

/** Resources whose id, name or alias holds the text, exact matches first. */
export async function findResources(
  { db }: Scope,
  search: { kind: ResourceKind | null; text: string; limit: number },
): Promise<Discovered[]> {
  const text = search.text.toLowerCase()
  const pattern = `%${escapeLike(text)}%`
  const rows = await db
    .selectFrom('resource')
    .select(['kind', 'id', 'name'])
    .where(sql<boolean>`(id ilike ${pattern} or name ilike ${pattern} or ${text} = any(names))`)
    .$if(search.kind !== null, (query) => query.where('kind', '=', search.kind as InventoryKind))
    .orderBy(sql`(id = ${search.text} or name = ${search.text})`, 'desc')
    .orderBy('kind')
    .orderBy('id')
    .limit(search.limit)
    .execute()
  return rows.map((row) => ({ ...row, aliases: [] }))
}

/**
 * Makes the inventory what the platform says it is, in one transaction: a reader sees the old state or the new one. What the
 * platform no longer names is dropped.
 */
export async function syncInventory(db: Db, state: Inventory): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('inventory', 0))`.execute(trx)
    await merge(trx, 'region', state.regions)
    await merge(
      trx,
      'shard',
      state.shards.map((shard) => ({ ...shard, config: JSON.stringify(shard.config) })),
    )
    await merge(
      trx,
      'node',
      state.nodes.map((node) => ({ ...node, diskByDirectory: JSON.stringify(node.diskByDirectory) })),
    )
    await merge(trx, 'tenant', state.tenants)
    await merge(trx, 'host', state.hosts)
    await merge(
      trx,
      'vm',
      state.vms.map((vm) => ({
        ...vm,
        pinnedTo: JSON.stringify(vm.pinnedTo),
        forbiddenHosts: JSON.stringify(vm.forbiddenHosts),
        startedAt: vm.startedAt ?? null,
        busy: vm.busy ?? null,
      })),
    )
    const links = state.links.map((link) => (link.a < link.b ? link : { ...link, a: link.b, b: link.a }))
    await trx.deleteFrom('link').execute()
    if (links.length > 0) await trx.insertInto('link').values(links).execute()
    const ids = (rows: { id: string }[]) => [...rows.map((row) => row.id), '']
    await trx.deleteFrom('vm').where('id', 'not in', ids(state.vms)).execute()
    await trx.deleteFrom('host').where('id', 'not in', ids(state.hosts)).execute()
    await trx.deleteFrom('tenant').where('id', 'not in', ids(state.tenants)).execute()
    await trx.deleteFrom('node').where('id', 'not in', ids(state.nodes)).execute()
    await trx.deleteFrom('shard').where('id', 'not in', ids(state.shards)).execute()
    await trx.deleteFrom('region').where('id', 'not in', ids(state.regions)).execute()
    await declareResources(trx, platformSource, toDeclared(state))
    await sql`
      insert into inventory_sync (at) values (nightshift_now())
      on conflict (only_row) do update set at = excluded.at`.execute(trx)
  })
}

async function merge(
  trx: Trx,
  table: 'region' | 'shard' | 'node' | 'tenant' | 'host' | 'vm',
  rows: Record<string, unknown>[],
): Promise<void> {
  if (rows.length === 0) return
  const columns = Object.keys(rows[0] ?? {}).filter((column) => column !== 'id')
  await trx
    .insertInto(table)
    .values(rows as never)
    .onConflict((conflict) =>
      columns.length === 0
        ? conflict.column('id').doNothing()
        : conflict
            .column('id')
            .doUpdateSet(() => Object.fromEntries(columns.map((column) => [column, sql.ref(`excluded.${column}`)]))),
    )
    .execute()
}

/** A file that says what cannot be: every fault of it, in sentences. */
export class ImportFaultsError extends Error {
  override name = 'ImportFaultsError' as const
  readonly faults: string[]
  constructor(faults: string[]) {
    super(faults[0] ?? '')
    this.faults = faults
  }
}

/** The inventory as a file that can be imported: what people imported, and without a platform hosts, nodes and groups. */
export async function readSiteFile(db: Db | Trx, { hasPlatform }: { hasPlatform: boolean }): Promise<SiteFile> {
  const { resources, relations } = await readImported(db)
  return {
    ...(hasPlatform ? { groups: [], nodes: [], hosts: [] } : await readSite(db)),
    resources: resources.map(({ name, aliases = [], attributes = {}, kind, id }) => ({
      kind,
      id,
      ...(name !== id && { name }),
      ...(aliases.length > 0 && { aliases: [...aliases] }),
      ...(Object.keys(attributes).length > 0 && { attributes }),
    })),
    relations: relations.map(({ from, kind, to }) => ({ from: resourceKey(from), kind, to: resourceKey(to) })),
  }
}

/**
 * Adds and changes what the file holds; with `prune`, removes what it does not. All of it or nothing: throws ImportFaultsError with
 * everything that is wrong.
 */
export async function importSiteFile(
  trx: Trx,
  file: SiteFile,
  { prune, hasPlatform }: { prune: boolean; hasPlatform: boolean },
): Promise<SiteChange> {
  const { groups, nodes, hosts } = file
  const change: SiteChange = !hasPlatform
    ? await writeSite(trx, { groups, nodes, hosts }, { prune })
    : { added: [], changed: [], removed: [], kept: [] }
  const before = await readImported(trx)
  const declared = prune ? fileToDeclared(file) : mergeSites(before, fileToDeclared(file))
  const faults = findDeclarationFaults(declared, await knownKeys(trx, { prune: true }))
  if (faults.length > 0) throw new ImportFaultsError(faults)
  await declareResources(trx, importSource, declared)
  return addChanges(change, before, declared)
}

async function readImported(db: Db | Trx): Promise<Declared> {
  const resources = await db
    .selectFrom('resourceSource')
    .select(['kind', 'id', 'name', 'aliases', 'attributes'])
    .where('source', '=', importSource.name)
    .orderBy('kind')
    .orderBy('id')
    .execute()
  const relations = await db
    .selectFrom('relation')
    .selectAll()
    .where('source', '=', importSource.name)
    .orderBy('fromKind')
    .orderBy('fromId')
    .orderBy('kind')
    .orderBy('toKind')
    .orderBy('toId')
    .execute()
  return {
    resources,
    relations: relations.map(({ fromKind, fromId, kind, toKind, toId }) => ({
      from: { kind: fromKind, id: fromId },
      kind,
      to: { kind: toKind, id: toId },
    })),
  }
}

const relationKey = ({ from, kind, to }: Declared['relations'][number]): string =>
  `${resourceKey(from)} ${kind} ${resourceKey(to)}`

function mergeSites(before: Declared, wanted: Declared): Declared {
  const resources = new Map([...before.resources, ...wanted.resources].map((each) => [resourceKey(each), each]))
  const relations = new Map([...before.relations, ...wanted.relations].map((each) => [relationKey(each), each]))
  return { resources: [...resources.values()], relations: [...relations.values()] }
}

/** What the other sources list: a relation may lead there. With `prune` what was imported before leaves, and counts no more. */
export async function knownKeys(db: Db | Trx, { prune }: { prune: boolean }): Promise<Set<string>> {
  const { rows } = await sql<{ key: string }>`
    select distinct kind || ':' || id as key from resource_source
    where not ${prune} or source <> ${importSource.name}`.execute(db)
  return new Set(rows.map(({ key }) => key))
}

function addChanges(change: SiteChange, before: Declared, after: Declared): SiteChange {
  const flat = ({ resources, relations }: Declared) =>
    new Map([
      ...resources.map(
        ({ kind, id, name = id, aliases = [], attributes = {} }) =>
          [`${kind}:${id}`, JSON.stringify([name, aliases, attributes])] as const,
      ),
      ...relations.map((each) => [relationKey(each), ''] as const),
    ])
  const [old, wanted] = [flat(before), flat(after)]
  return {
    added: [...change.added, ...[...wanted.keys()].filter((key) => !old.has(key))],
    changed: [
      ...change.changed,
      ...[...wanted].flatMap(([key, text]) => (old.has(key) && old.get(key) !== text ? [key] : [])),
    ],
    removed: [...change.removed, ...[...old.keys()].filter((key) => !wanted.has(key))],
    kept: change.kept,
  }
}
