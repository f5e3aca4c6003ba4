import { isIP } from 'node:net'
import { sql } from 'kysely'
import { coversResource } from '../../domain/decision-right.ts'
import type { OwnTarget } from '../../domain/refusal.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { Trx } from '../connect.ts'

/** Variables of the worker that say where parts of Nightshift stand. */
const places: Record<string, string> = { TEMPORAL_ADDRESS: 'its Temporal', LLM_BASE_URL: 'its model' }

/**
 * Targets that Nightshift stands on, or that carry what it stands on: its database as the
 * connection is served, Temporal and model as the worker was started with, and what the site names
 * (`agent.footprint`: `host:gpu-*`). A target is found by all its names.
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
    const why = found ? hosts.get(found) : coversResource(patterns, target) ? 'what the site calls its own' : undefined
    return why ? [{ target: resourceKey(target), why }] : []
  })
}

/**
 * Machines by names and addresses, each with the parts of Nightshift there. What this machine
 * reaches on itself has no name that others know.
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

/** The host of an address, `temporal.internal:7233` or a URL; null where it is this machine. */
function hostOf(address: string): string | null {
  const isBareIp6 = isIP(address) === 6
  const url = URL.parse(address.includes('://') ? address : `tcp://${isBareIp6 ? `[${address}]` : address}`)
  const host = url?.hostname.replace(/^\[|\]$/g, '').toLowerCase() ?? ''
  return host === '' || host === 'localhost' || host === '::1' || host.startsWith('127.') ? null : host
}
