import { sql } from 'kysely'
import type { LinkState, NodeState, ShardState, TenantState, VmState } from '../../domain/platform.ts'
import type { Scope } from '../scope.ts'

export async function shards({ db }: Scope): Promise<ShardState[]> {
  return (await db.selectFrom('shard').selectAll().orderBy('id').execute()) as ShardState[]
}

export async function shardById({ db }: Scope, id: string): Promise<ShardState | null> {
  return ((await db.selectFrom('shard').selectAll().where('id', '=', id).executeTakeFirst()) as ShardState) ?? null
}

export async function nodesOfShard({ db }: Scope, shard: string): Promise<NodeState[]> {
  return (await db.selectFrom('node').selectAll().where('shard', '=', shard).orderBy('id').execute()) as NodeState[]
}

export async function nodeById({ db }: Scope, id: string): Promise<NodeState | null> {
  return ((await db.selectFrom('node').selectAll().where('id', '=', id).executeTakeFirst()) as NodeState) ?? null
}

export async function tenantById({ db }: Scope, id: string): Promise<TenantState | null> {
  return ((await db.selectFrom('tenant').selectAll().where('id', '=', id).executeTakeFirst()) as TenantState) ?? null
}

export type HostRow = {
  id: string
  region: string
  rack: string
  state: 'live' | 'draining' | 'dead'
  ramMib: number
  cpuMc: number
  ramReserveMib?: number
  cpuReserveMc?: number
}

export async function hosts({ db }: Scope): Promise<HostRow[]> {
  return (await db.selectFrom('host').selectAll().orderBy('id').execute()).map(toHostRow)
}

export async function hostById({ db }: Scope, id: string): Promise<HostRow | null> {
  const row = await db.selectFrom('host').selectAll().where('id', '=', id).executeTakeFirst()
  return row ? toHostRow(row) : null
}

type Reserve = { ramReserveMib: number | null; cpuReserveMc: number | null }

/** Leaves out an empty reserve: most hosts have no reserve, and models read every field. */
function toHostRow({ ramReserveMib, cpuReserveMc, ...row }: Reserve & { id: string; state: string }): HostRow {
  return {
    ...(row as unknown as HostRow),
    ...(ramReserveMib !== null && { ramReserveMib }),
    ...(cpuReserveMc !== null && { cpuReserveMc }),
  }
}

/** The capacity that VMs on a host use. Only running VMs count, with their configured size. */
export type HostUse = { vms: number; running: number; ramMib: number; cpuMc: number }

/** Maps hosts to the capacity that their VMs use. Hosts without VMs are absent. */
export async function readHostUses({ db }: Scope): Promise<Map<string, HostUse>> {
  const { rows } = await sql<HostUse & { host: string }>`
    select host, count(*)::int as vms, count(*) filter (where running)::int as running,
      coalesce(sum(ram_mib) filter (where running), 0)::int as "ramMib",
      coalesce(sum(cpu_mc) filter (where running), 0)::int as "cpuMc"
    from vm where host is not null group by host`.execute(db)
  return new Map(rows.map(({ host, ...use }) => [host, use]))
}

/** Lists the VMs that are defined on a host, the VMs with the highest priority first. */
export async function vmsOnHost({ db }: Scope, host: string): Promise<VmState[]> {
  const on = db.selectFrom('vm').selectAll().where('host', '=', host)
  return await on.orderBy('priority', 'desc').orderBy('id').execute()
}

export async function vms({ db }: Scope): Promise<VmState[]> {
  return await db.selectFrom('vm').selectAll().orderBy('id').execute()
}

export async function vmById({ db }: Scope, id: string): Promise<VmState | null> {
  return (await db.selectFrom('vm').selectAll().where('id', '=', id).executeTakeFirst()) ?? null
}

/** Counts the VMs that are defined on a host, running or not. */
export async function vmCountOnHost({ db }: Scope, host: string): Promise<number> {
  const counted = db.selectFrom('vm').select(({ fn }) => fn.countAll<number>().as('count'))
  return Number((await counted.where('host', '=', host).executeTakeFirstOrThrow()).count)
}

export async function links({ db }: Scope): Promise<LinkState[]> {
  return await db.selectFrom('link').selectAll().orderBy('a').orderBy('b').execute()
}
