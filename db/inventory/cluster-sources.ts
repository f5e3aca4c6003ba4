import { clusterSource } from '../../domain/listed-cluster.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Db } from '../connect.ts'

/** Finds the sources of clusters that list a resource, and its name in each cluster. */
export async function clusterSourcesOf(db: Db, { kind, id }: ResourceRef): Promise<{ source: string; name: string }[]> {
  if (kind === 'incident' || kind === 'proposal') return []
  const prefix = clusterSource('').name
  const rows = await db
    .selectFrom('resourceSource')
    .select(['source', 'name'])
    .where('kind', '=', kind)
    .where('id', '=', id)
    .where('source', 'like', `${prefix}%`)
    .orderBy('source')
    .limit(3)
    .execute()
  return rows.map(({ source, name }) => ({ source: source.slice(prefix.length), name }))
}

/** Maps the names that a cluster gives to its nodes to their ids. */
export async function nodesOfCluster(db: Db, cluster: string, names: readonly string[]): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('resourceSource')
    .select(['id', 'name'])
    .where('kind', '=', 'node')
    .where('source', '=', clusterSource(cluster).name)
    .where('name', 'in', [...names])
    .execute()
  return new Map(rows.map(({ id, name }) => [name, id]))
}
