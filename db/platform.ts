import type { LinkState, NodeState, ShardState, TenantState, VmState } from '../domain/platform.ts'
import type { Db } from './connect.ts'

/** The inventory as the last synchronisation left it. */

export async function shards(db: Db): Promise<ShardState[]> {
  return (await db.selectFrom('shard').selectAll().orderBy('id').execute()) as ShardState[]
}

export async function shardById(db: Db, id: string): Promise<ShardState | null> {
  return ((await db.selectFrom('shard').selectAll().where('id', '=', id).executeTakeFirst()) as ShardState) ?? null
}

export async function nodesOfShard(db: Db, shard: string): Promise<NodeState[]> {
  return (await db.selectFrom('node').selectAll().where('shard', '=', shard).orderBy('id').execute()) as NodeState[]
}

export async function nodeById(db: Db, id: string): Promise<NodeState | null> {
  return ((await db.selectFrom('node').selectAll().where('id', '=', id).executeTakeFirst()) as NodeState) ?? null
}

export async function tenantById(db: Db, id: string): Promise<TenantState | null> {
  return ((await db.selectFrom('tenant').selectAll().where('id', '=', id).executeTakeFirst()) as TenantState) ?? null
}

export type HostRow = {
  id: string
  region: string
  rack: string
  state: 'live' | 'draining' | 'dead'
  ramMib: number
  cpuMc: number
}

export async function hosts(db: Db): Promise<HostRow[]> {
  return (await db.selectFrom('host').selectAll().orderBy('id').execute()) as HostRow[]
}

export async function hostById(db: Db, id: string): Promise<HostRow | null> {
  return ((await db.selectFrom('host').selectAll().where('id', '=', id).executeTakeFirst()) as HostRow) ?? null
}

export async function vms(db: Db): Promise<VmState[]> {
  return await db.selectFrom('vm').selectAll().orderBy('id').execute()
}

export async function vmById(db: Db, id: string): Promise<VmState | null> {
  return (await db.selectFrom('vm').selectAll().where('id', '=', id).executeTakeFirst()) ?? null
}

/** How many VMs are defined to run on a host, running or not. */
export async function vmCountOnHost(db: Db, host: string): Promise<number> {
  const counted = db.selectFrom('vm').select(({ fn }) => fn.countAll<number>().as('count'))
  return Number((await counted.where('host', '=', host).executeTakeFirstOrThrow()).count)
}

export async function links(db: Db): Promise<LinkState[]> {
  return await db.selectFrom('link').selectAll().orderBy('a').orderBy('b').execute()
}
