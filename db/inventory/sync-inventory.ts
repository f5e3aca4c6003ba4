import { sql } from 'kysely'
import { platformSource, toDeclared } from '../../domain/declared-resources.ts'
import type { Inventory } from '../../domain/platform.ts'
import type { Db, Trx } from '../connect.ts'
import { declareResources } from './registry.ts'

/**
 * Replaces the stored inventory by the platform's inventory in one transaction, so that a reader
 * sees either the old state or the new state. Entries that the platform no longer lists are
 * deleted.
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
    await merge(
      trx,
      'host',
      state.hosts.map((host) => ({
        ...onlyState(host),
        ramReserveMib: host.ramReserveMib ?? null,
        cpuReserveMc: host.cpuReserveMc ?? null,
      })),
    )
    await merge(
      trx,
      'vm',
      state.vms.map((vm) => ({
        ...onlyState(vm),
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

type NotInTable = 'name' | 'aliases' | 'fenced' | 'restartsElsewhere'

/** Removes names and rare fields, which only the registry stores and not the table of states. */
function onlyState<T extends { [key in NotInTable]?: unknown }>({
  name: _,
  aliases: __,
  fenced: ___,
  restartsElsewhere: ____,
  ...state
}: T): Omit<T, NotInTable> {
  return state
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
