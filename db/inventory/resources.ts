import { sql } from 'kysely'
import { type AlertResource, chooseResource, namesToLookUp } from '../../domain/alert-resource.ts'
import { platformSource } from '../../domain/declared-resources.ts'
import { type InventoryKind, onceAlong, type RelationStep } from '../../domain/kinds.ts'
import { type ResourceKind, type ResourceRef, resourceKey, resourcesNear } from '../../domain/registry.ts'
import type { ResourceRule } from '../../domain/resource-rules.ts'
import type { DiscoveredThing } from '../../domain/tool.ts'
import { type Db, escapeLike, type Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { findByNames, otherNames } from './registry.ts'

/**
 * Finds the subject of each alert in the registry, because a label alone makes nothing a target.
 * Uses one query for all alerts.
 */
export async function findAlertResources(
  db: Db | Trx,
  alerts: readonly Record<string, string>[],
  rules: readonly ResourceRule[],
): Promise<AlertResource[]> {
  const known = await findByNames(db, [...new Set(alerts.flatMap((labels) => namesToLookUp(labels, rules)))])
  return alerts.map((labels) => chooseResource(labels, rules, known))
}

const typed = ['region', 'shard', 'node', 'tenant', 'host', 'vm'] as const
/**
 * Whether the platform's own tables contain the state of this kind. All other kinds are only in the
 * registry.
 */
const isTyped = (kind: string): kind is (typeof typed)[number] => (typed as readonly string[]).includes(kind)

export async function resourceById(db: Db | Trx, ref: ResourceRef): Promise<Record<string, unknown> | null> {
  if (ref.kind === 'incident' || ref.kind === 'proposal') return null
  if (isTyped(ref.kind)) {
    const row = await db.selectFrom(ref.kind).selectAll().where('id', '=', ref.id).executeTakeFirst()
    if (row) return row
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
 * Lists the neighbours of a resource along the paths of its kind, and its other names. Uses only
 * relations of the platform or an administrator, because reversible writes run automatically on
 * neighbours.
 */
export async function neighboursOf(db: Db | Trx, ref: ResourceRef): Promise<ResourceRef[]> {
  // Reads each step once, because several paths from one resource begin with the same step.
  const asked = new Map<string, Promise<ResourceRef[]>>()
  return await resourcesNear(ref, {
    otherNames: async (one) => (await otherNames(db, [one])).get(resourceKey(one)) ?? [],
    stepFrom(from, step) {
      const key = JSON.stringify([from, step])
      const answer = asked.get(key) ?? stepFrom(db, from, step)
      asked.set(key, answer)
      return answer
    },
  })
}

async function stepFrom(db: Db | Trx, from: readonly ResourceRef[], step: RelationStep): Promise<ResourceRef[]> {
  const [near, far] = step.go === 'out' ? (['from', 'to'] as const) : (['to', 'from'] as const)
  const ids = from.map(({ id }) => id)
  const [left, right] = (step.go === 'out' ? [from[0]?.kind, step.to] : [step.to, from[0]?.kind]) as InventoryKind[]
  // Excludes contradictory relations: if only one of two values can be true, neither counts as
  // near.
  const isOnce = left !== undefined && right !== undefined && onceAlong(left, step.along).includes(right)
  const isTheOne = isOnce
    ? sql`not exists (
        select from relation other join registry_source teller using (source)
        where teller.has_authority and (other.from_kind, other.from_id, other.kind, other.to_kind)
          = (relation.from_kind, relation.from_id, relation.kind, relation.to_kind) and other.to_id <> relation.to_id)`
    : sql`true`
  const { rows } = await sql<ResourceRef>`
    select distinct ${sql.ref(`relation.${far}_kind`)} as kind, ${sql.ref(`relation.${far}_id`)} as id
    from relation join registry_source using (source)
    where has_authority and relation.kind = ${step.along} and ${sql.ref(`relation.${near}_kind`)} = ${from[0]?.kind}
      and ${sql.ref(`relation.${near}_id`)} = any(${ids}) and ${sql.ref(`relation.${far}_kind`)} = ${step.to}
      and ${isTheOne}
    order by 2`.execute(db)
  return rows
}

/** Whether a text is a part of an id or name, or a whole alias. Each of the three has an index. */
export function hasText(text: string) {
  const pattern = `%${escapeLike(text.toLowerCase())}%`
  return sql<boolean>`(resource.id ilike ${pattern} or resource.name ilike ${pattern} or resource.names @> array[${text.toLowerCase()}::text])`
}

/** Finds resources whose id, name or alias contains the text, exact matches first. */
export async function findResources(
  { db }: Scope,
  search: { kind: ResourceKind | null; text: string; limit: number },
): Promise<DiscoveredThing[]> {
  const rows = await db
    .selectFrom('resource')
    .select(['kind', 'id', 'name'])
    .where(hasText(search.text))
    .$if(search.kind !== null, (query) => query.where('kind', '=', search.kind as InventoryKind))
    .orderBy(sql`(id = ${search.text} or name = ${search.text})`, 'desc')
    .orderBy('kind')
    .orderBy('id')
    .limit(search.limit)
    .execute()
  return rows.map((row) => ({ ...row, aliases: [] }))
}

type InventoryFacts = {
  counts: Partial<Record<InventoryKind, number>>
  platform: { shards: boolean; hosts: boolean }
  databaseShards: number
  racks: number
}

/**
 * Counts resources by kind, and which of them the platform lists, and the racks, for the prompt and
 * the tools.
 */
export async function readSiteFacts({ db }: Scope): Promise<InventoryFacts> {
  const { rows } = await sql<{ kind: InventoryKind; count: number }>`
    select kind, count(distinct id)::int as count from resource_source group by kind`.execute(db)
  const { rows: more } = await sql<{ listed: InventoryKind[]; databaseShards: number; racks: number }>`
    select
      (select coalesce(array_agg(distinct kind), '{}') from resource_source
        where source = ${platformSource.name} and exists (select from inventory_sync where at > 'epoch')) as listed,
      (select count(*) from shard where role = 'database')::int as "databaseShards",
      (select count(distinct rack) from host)::int as racks`.execute(db)
  const { listed = [], databaseShards = 0, racks = 0 } = more[0] ?? {}
  const counts = Object.fromEntries(rows.map(({ kind, count }) => [kind, count]))
  const platform = { shards: listed.includes('shard'), hosts: listed.includes('host') }
  return { counts, platform, databaseShards: platform.shards ? databaseShards : 0, racks }
}
