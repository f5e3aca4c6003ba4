import { sql } from 'kysely'
import { type AlertResource, chooseResource, namesToLookUp } from '../domain/alert-resource.ts'
import type { ResourceRule } from '../domain/explained-alert.ts'
import type { InventoryKind, Step } from '../domain/kinds.ts'
import type { Inventory } from '../domain/platform.ts'
import { platformSource, toDeclared } from '../domain/registry.ts'
import { nearOf, type ResourceKind, type ResourceRef, resourceKey } from '../domain/resource.ts'
import type { Discovered } from '../domain/tool.ts'
import type { Db, Trx } from './connect.ts'
import { declareResources, findByNames, otherNames } from './registry.ts'
import type { Scope } from './scope.ts'

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
  return await nearOf(ref, {
    otherNames: async (one) => (await otherNames(db, [one])).get(resourceKey(one)) ?? [],
    stepFrom: (from, step) => stepFrom(db, from, step),
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
  const pattern = `%${text.replace(/[\\%_]/g, (character) => `\\${character}`)}%`
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
