import { isIP } from 'node:net'
import { sql } from 'kysely'
import { coversResource } from '../../domain/decision-right.ts'
import type { OwnTarget } from '../../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { Trx } from '../connect.ts'

/** Environment variables of the worker that contain the address of a part of Nightshift. */
const places: Record<string, string> = { TEMPORAL_ADDRESS: 'its Temporal', LLM_BASE_URL: 'its model' }

/**
 * Finds targets that Nightshift depends on, or on which its parts run: its database by the current
 * connection, Temporal and model server by the settings of the worker, and the targets that an
 * admin configured (`agent.footprint`: `host:gpu-*`). A target is found under all of its names.
 */
export async function ownAmong(
  trx: Trx,
  targets: readonly ResourceRef[],
  patterns: readonly string[],
): Promise<OwnTarget[]> {
  if (targets.length === 0) return []
  const hosts = await ownHosts(trx)
  const { rows } = await sql<{ kind: ResourceRef['kind']; id: string; names: string[] }>`
    select asked.kind, asked.id, array_agg(distinct name) as names
    from jsonb_to_recordset(${JSON.stringify(targets)}) as asked (kind text, id text)
    cross join lateral (
      select unnest(names) as name from resource where (kind, id) = (asked.kind, asked.id)
      union all
      select unnest(carried.names) from relation join resource as carried on (carried.kind, carried.id) = (relation.from_kind, relation.from_id)
      where (relation.to_kind, relation.to_id) = (asked.kind, asked.id)
        and relation.kind in ('runs_on', 'belongs_to', 'depends_on', 'same_as')
    ) as known group by asked.kind, asked.id`.execute(trx)
  return targets.flatMap((target) => {
    const row = rows.find(({ kind, id }) => kind === target.kind && id === target.id)
    const found = [target.id.toLowerCase(), ...(row?.names ?? [])].find((name) => hosts.has(name))
    const why = found
      ? hosts.get(found)
      : coversResource(patterns, target)
        ? 'resources that agent.footprint names'
        : undefined
    return why ? [{ target: resourceKey(target), why }] : []
  })
}

/**
 * Maps names and addresses of machines to the part of Nightshift that they run. Leaves out loopback
 * addresses, by which no other machine knows this machine.
 */
async function ownHosts(trx: Trx): Promise<Map<string, string>> {
  const { rows } = await sql<{ name: string; value: string | null }>`
    select each->>'name' as name, each->>'value' as value from worker_environment, jsonb_array_elements(variables) as each
    union all select 'database', host(inet_server_addr())`.execute(trx)
  const found = new Map<string, string>()
  for (const { name, value } of rows) {
    const why = name === 'database' ? 'its database' : places[name]
    const host = why && value ? hostOf(value) : null
    if (host && why) found.set(host, why)
  }
  return found
}

/** Returns the host in `temporal.internal:7233` or a URL; null for the local machine. */
function hostOf(address: string): string | null {
  const isBareIp6 = isIP(address) === 6
  const url = URL.parse(address.includes('://') ? address : `tcp://${isBareIp6 ? `[${address}]` : address}`)
  const host = url?.hostname.replace(/^\[|\]$/g, '').toLowerCase() ?? ''
  return host === '' || host === 'localhost' || host === '::1' || host.startsWith('127.') ? null : host
}
