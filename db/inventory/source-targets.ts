import { sql } from 'kysely'
import type { RegistrySource } from '../../domain/declared-resources.ts'
import { machineKinds } from '../../domain/kinds.ts'
import { clusterSource, clusterToDeclared, type ListedCluster } from '../../domain/listed-cluster.ts'
import { databaseToDeclared, type ListedDatabase } from '../../domain/listed-database.ts'
import { parseResourceKey, type ResourceRef } from '../../domain/registry.ts'
import {
  addressOf,
  type ListedTarget,
  machineOfInstance,
  type Source,
  targetsSource,
  targetsToDeclared,
} from '../../domain/source.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db, Trx } from '../connect.ts'
import { forgetMembers, mergeMembers } from './cluster-members.ts'
import { declareResources } from './registry.ts'

/**
 * Declares the targets of one source to the registry, unless the source was changed or removed
 * since its list was read. Returns whether anything changed.
 */
export async function declareTargets(db: Db, source: Source, listed: readonly ListedTarget[]): Promise<boolean> {
  // Removes secrets before ids are made. Two targets that differ only in a secret then become one.
  const targets = cleanse(listed)
  return await db.transaction().execute(async (trx) => {
    if (!(await isAsItWas(trx, source))) return false
    const names = targets.flatMap(({ labels: { instance = '' } }) => machineOfInstance(instance) ?? [])
    const machines = await findMachines(trx, [...new Set(names)])
    return await declareResources(
      trx,
      targetsSource(source),
      targetsToDeclared(targets, (name) => machines.get(name) ?? null),
    )
  })
}

/**
 * Declares the server of a source to the registry, unless the source was changed or removed since
 * the server was read. Returns whether anything changed.
 */
export async function declareDatabase(db: Db, source: Source, listed: ListedDatabase): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    if (!(await isAsItWas(trx, source))) return false
    const machine = machineOfInstance(new URL(source.url).host)
    const found = machine === null ? undefined : (await findMachines(trx, [machine])).get(machine)
    const known = { machine: found ?? null, origin: await findOrigin(trx, source, listed) }
    return await declareResources(trx, targetsSource(source), databaseToDeclared(source, cleanse(listed), known))
  })
}

/**
 * Declares a cluster to the registry as its source lists it, unless the source was changed or
 * removed since the list was read. Returns whether resources changed.
 */
export async function declareCluster(db: Db, source: Source, listed: ListedCluster): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    if (!(await isAsItWas(trx, source))) return false
    const addresses = [
      ...new Set(listed.nodes.flatMap((each) => each.addresses.map((address) => address.toLowerCase()))),
    ]
    const machines = await findMachines(trx, addresses, clusterSource(source.name).name)
    const declared = clusterToDeclared(
      source.name,
      cleanse(listed),
      (address) => machines.get(address.toLowerCase()) ?? null,
    )
    await mergeMembers(trx, source.name, listed.members)
    return await declareResources(trx, clusterSource(source.name), declared)
  })
}

/** Finds by address the source of the server from which a database server replicates. */
async function findOrigin(trx: Trx, { name, url }: Source, { replicatesFrom }: ListedDatabase): Promise<string | null> {
  if (!replicatesFrom) return null
  const { protocol } = new URL(url)
  const wanted = `${protocol}//${replicatesFrom.host.toLowerCase()}:${replicatesFrom.port}`
  const others = await trx.selectFrom('source').select(['name', 'url']).where('name', '<>', name).execute()
  return others.find((each) => addressOf(each.url) === wanted)?.name ?? null
}

/** Locks the source until the transaction ends, and returns whether it is still as it was read. */
async function isAsItWas(trx: Trx, { name, kind, url }: Source): Promise<boolean> {
  const found = await trx
    .selectFrom('source')
    .select('name')
    .where('name', '=', name)
    .where('kind', '=', kind)
    .where('url', '=', url)
    .forShare()
    .executeTakeFirst()
  return found !== undefined
}

/** Removes from the registry everything that a source listed. */
export async function forgetTargets(trx: Trx, source: RegistrySource): Promise<void> {
  const known = await trx
    .selectFrom('registrySource')
    .select('source')
    .where('source', '=', source.name)
    .executeTakeFirst()
  if (!known) return
  await declareResources(trx, source, { resources: [], relations: [] })
  await trx.deleteFrom('registrySource').where('source', '=', source.name).execute()
  const [kind, name = ''] = source.name.split(/:(.*)/s)
  if (kind === 'kubernetes') await forgetMembers(trx, name)
}

/**
 * Maps each name to the one machine with this name. An ambiguous name is left out. `besides`: a
 * source whose names do not count.
 */
async function findMachines(trx: Trx, names: readonly string[], besides = ''): Promise<Map<string, ResourceRef>> {
  if (names.length === 0) return new Map()
  const { rows } = await sql<{ name: string; key: string }>`
    select wanted.name, min(canonical) as key
    from (select canonical, unnest(said.names) as name from resource_source said join resource using (kind, id)
      where said.kind = any(${[...machineKinds]}::text[]) and said.source <> ${besides}) machine
      join unnest(${[...names]}::text[]) as wanted (name) using (name)
    group by wanted.name having count(distinct canonical) = 1`.execute(trx)
  return new Map(rows.map(({ name, key }) => [name, parseResourceKey(key) as ResourceRef]))
}
