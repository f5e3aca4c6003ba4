import { sql } from 'kysely'
import type { Inventory } from '../domain/platform.ts'
import type { ResourceKind, ResourceRef } from '../domain/resource.ts'
import type { Discovered } from '../domain/tool.ts'
import type { Db, Trx } from './connect.ts'

/** The labels that may name a resource, the most precise first. */
const labelKinds = ['vm', 'node', 'host', 'shard', 'tenant'] as const

/** Labels that exporters and alerts name a machine by, with or without a port: `instance="web-1.example.com:9100"`. */
const machineLabels = ['instance', 'node', 'nodename', 'host', 'hostname'] as const

/** The resource an alert's labels name, if the inventory knows it: a label alone makes nothing a target. */
export async function resourceOfLabels(db: Db | Trx, labels: Record<string, string>): Promise<ResourceRef | null> {
  return (await resourcesOfLabels(db, [labels]))[0] ?? null
}

/** The same for many alerts at once: a statement for each kind that any of them names. */
export async function resourcesOfLabels(
  db: Db | Trx,
  alerts: readonly Record<string, string>[],
): Promise<(ResourceRef | null)[]> {
  const known = new Map<string, ReadonlySet<string>>()
  for (const kind of labelKinds) {
    const ids = [...new Set(alerts.flatMap((labels) => labels[kind] || []))]
    if (ids.length === 0) continue
    const rows = await db.selectFrom(kind).select('id').where('id', 'in', ids).execute()
    known.set(kind, new Set(rows.map(({ id }) => id)))
  }
  const named = alerts.map((labels): ResourceRef | null => {
    const kind = labelKinds.find((each) => known.get(each)?.has(labels[each] ?? ''))
    return kind ? { kind, id: labels[kind] as string } : null
  })
  const machines = await machinesByName(
    db,
    alerts.flatMap((labels, at) => (named[at] ? [] : machineNames(labels))),
  )
  return named.map((ref, at) => ref ?? machineOf(machines, alerts[at] ?? {}))
}

/** The name of a machine without its port, and its first part. */
function machineNames(labels: Record<string, string>): string[] {
  return machineLabels.flatMap((label) => {
    const text = labels[label]
    if (!text) return []
    const address = text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').replace(/\/.*$/, '')
    const bare = address
      .replace(/^\[([^\]]+)\](?::\d+)?$/, '$1')
      .replace(/^([^:]+):\d+$/, '$1')
      .toLowerCase()
    const first = /^[\d.]+$/.test(bare) || bare.includes(':') ? bare : (bare.split('.')[0] ?? bare)
    return first === bare ? [bare] : [bare, first]
  })
}

/** The machine that a label names; null where the name means none, or two. */
function machineOf(
  machines: ReadonlyMap<string, ResourceRef | null>,
  labels: Record<string, string>,
): ResourceRef | null {
  for (const name of machineNames(labels)) {
    const found = machines.get(name)
    if (found) return found
  }
  return null
}

async function machinesByName(db: Db | Trx, names: readonly string[]): Promise<Map<string, ResourceRef | null>> {
  if (names.length === 0) return new Map()
  const { rows } = await sql<{ kind: 'node' | 'host'; id: string; name: string }>`
    select kind, id, name from (
      select 'node' as kind, id, unnest(array[lower(id), lower(hostname), ip]) as name from node
      union select 'host', id, lower(id) from host
    ) machine where name = any(${[...new Set(names)]})`.execute(db)
  const byName = new Map<string, ResourceRef | null>()
  for (const { kind, id, name } of rows) {
    const before = byName.get(name)
    const isOther = before !== undefined && !(before?.kind === kind && before.id === id)
    byName.set(name, isOther ? null : { kind, id })
  }
  return byName
}

export async function resourceById(db: Db | Trx, ref: ResourceRef): Promise<Record<string, unknown> | null> {
  if (ref.kind === 'incident' || ref.kind === 'proposal') return null
  const row = await db.selectFrom(ref.kind).selectAll().where('id', '=', ref.id).executeTakeFirst()
  return row ?? null
}

/** The direct neighbours of a resource: what belongs to it and what it belongs to, one step away. */
export async function neighboursOf(db: Db | Trx, ref: ResourceRef): Promise<ResourceRef[]> {
  const refs = (kind: ResourceKind, ids: (string | null)[]): ResourceRef[] =>
    ids.filter((id): id is string => id !== null).map((id) => ({ kind, id }))
  if (ref.kind === 'shard') {
    const nodes = await db.selectFrom('node').select('id').where('shard', '=', ref.id).orderBy('id').execute()
    const tenants = await db.selectFrom('tenant').select('id').where('shard', '=', ref.id).orderBy('id').execute()
    return [
      ...refs(
        'node',
        nodes.map((row) => row.id),
      ),
      ...refs(
        'tenant',
        tenants.map((row) => row.id),
      ),
    ]
  }
  if (ref.kind === 'node') {
    const node = await db.selectFrom('node').select('shard').where('id', '=', ref.id).executeTakeFirst()
    if (!node) return []
    const siblings = await db
      .selectFrom('node')
      .select('id')
      .where('shard', '=', node.shard)
      .where('id', '!=', ref.id)
      .orderBy('id')
      .execute()
    return [
      ...refs('shard', [node.shard]),
      ...refs(
        'node',
        siblings.map((row) => row.id),
      ),
    ]
  }
  if (ref.kind === 'tenant') {
    const tenant = await db.selectFrom('tenant').select('shard').where('id', '=', ref.id).executeTakeFirst()
    return refs('shard', [tenant?.shard ?? null])
  }
  if (ref.kind === 'host') {
    const vms = await db.selectFrom('vm').select('id').where('host', '=', ref.id).orderBy('id').execute()
    const links = await db
      .selectFrom('link')
      .select(['a', 'b'])
      .where((where) => where.or([where('a', '=', ref.id), where('b', '=', ref.id)]))
      .execute()
    return [
      ...refs(
        'vm',
        vms.map((row) => row.id),
      ),
      ...refs(
        'host',
        links.map((row) => (row.a === ref.id ? row.b : row.a)),
      ),
    ]
  }
  if (ref.kind === 'vm') {
    const vm = await db.selectFrom('vm').select('host').where('id', '=', ref.id).executeTakeFirst()
    return refs('host', [vm?.host ?? null])
  }
  return []
}

const searchable = ['region', 'shard', 'node', 'tenant', 'host', 'vm'] as const

/** Resources whose id or name holds the text, exact matches first. */
export async function findResources(
  db: Db,
  search: { kind: ResourceKind | null; text: string; limit: number },
): Promise<Discovered[]> {
  const pattern = `%${search.text.replace(/[\\%_]/g, (character) => `\\${character}`)}%`
  const found: Discovered[] = []
  for (const kind of searchable) {
    if (search.kind !== null && search.kind !== kind) continue
    const name = kind === 'tenant' ? sql<string>`name` : kind === 'node' ? sql<string>`hostname` : sql<string>`id`
    const rows = await db
      .selectFrom(kind)
      .select(['id'])
      .select(name.as('name'))
      .where((where) => where.or([where('id', 'ilike', pattern), where(name, 'ilike', pattern)]))
      .orderBy('id')
      .limit(search.limit)
      .execute()
    for (const row of rows) found.push({ kind, id: row.id, name: row.name, aliases: [] })
  }
  const exact = (candidate: Discovered) => Number(candidate.id !== search.text && candidate.name !== search.text)
  return found.sort((a, b) => exact(a) - exact(b)).slice(0, search.limit)
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
            .doUpdateSet((update) =>
              Object.fromEntries(columns.map((column) => [column, update.ref(`excluded.${column}` as never)])),
            ),
    )
    .execute()
}
