import { sql } from 'kysely'
import { machineKinds } from '../domain/kinds.ts'
import type { RegistrySource } from '../domain/registry.ts'
import type { ResourceRef } from '../domain/resource.ts'
import { type ListedTarget, machineOfInstance, targetsToDeclared } from '../domain/target.ts'
import { cleanse } from '../safety/cleanse.ts'
import type { Db, Trx } from './connect.ts'
import { declareResources } from './registry.ts'

/** Makes the registry hold the targets that one source lists. Answers whether anything changed. */
export async function declareTargets(
  db: Db,
  source: RegistrySource,
  listed: readonly ListedTarget[],
): Promise<boolean> {
  // Before ids are made of it, so that two that differ in a secret alone are one.
  const targets = cleanse(listed)
  return await db.transaction().execute(async (trx) => {
    const names = targets.flatMap(({ labels: { instance = '' } }) => machineOfInstance(instance) ?? [])
    const machines = await findMachines(trx, [...new Set(names)])
    return await declareResources(
      trx,
      source,
      targetsToDeclared(targets, (name) => machines.get(name) ?? null),
    )
  })
}

/** What the source listed leaves the registry. */
export async function forgetTargets(trx: Trx, source: RegistrySource): Promise<void> {
  const known = await trx
    .selectFrom('registrySource')
    .select('source')
    .where('source', '=', source.name)
    .executeTakeFirst()
  if (!known) return
  await declareResources(trx, source, { resources: [], relations: [] })
  await trx.deleteFrom('registrySource').where('source', '=', source.name).execute()
}

/** The one machine that each name means; a name of several things means none of them. */
async function findMachines(trx: Trx, names: readonly string[]): Promise<Map<string, ResourceRef>> {
  if (names.length === 0) return new Map()
  const { rows } = await sql<{ name: string; kind: ResourceRef['kind']; id: string }>`
    select wanted.name, min(kind) as kind, min(id) as id
    from (select kind, id, canonical, unnest(names) as name from resource where kind = any(${[...machineKinds]}::text[])) machine
      join unnest(${[...names]}::text[]) as wanted (name) using (name)
    where kind || ':' || id = canonical
    group by wanted.name having count(*) = 1`.execute(trx)
  return new Map(rows.map(({ name, kind, id }) => [name, { kind, id }]))
}
