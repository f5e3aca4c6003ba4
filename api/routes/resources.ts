import { z } from '@hono/zod-openapi'
import { activeAlerts } from '../../db/alerts/active-alerts.ts'
import { hostById, nodeById, shardById, tenantById, vmById, vmCountOnHost } from '../../db/inventory/platform-rows.ts'
import { findResources } from '../../db/inventory/resources.ts'
import type { Scope } from '../../db/scope.ts'
import {
  type ResourceKind,
  type ResourceRef,
  type ResourceState,
  resourceKind,
  resourceState,
} from '../../domain/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { pageOf } from '../http/body.ts'
import { endpoint, type Router } from '../http/endpoint.ts'

const tag = 'platform'

export function resourceRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/resources',
    permission: 'read',
    tag,
    summary: 'Resources whose id or name holds a text, exact matches first',
    query: z.object({
      q: z.string().min(1).max(100),
      kind: resourceKind.optional(),
      limit: z.coerce.number().int().min(1).max(100).default(20),
    }),
    answer: pageOf(z.object({ kind: resourceKind, id: z.string(), name: z.string(), aliases: z.array(z.string()) })),
    example: { items: [{ kind: 'shard', id: 'db-osl-1', name: 'db-osl-1', aliases: [] }], nextCursor: null },
    async run({ scope, query: { q, kind, limit } }) {
      await deps.state.refresh()
      return { items: await findResources(scope, { kind: kind ?? null, text: q, limit }), nextCursor: null }
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/active-alerts',
    permission: 'read',
    tag,
    summary: 'Alerts on a resource, under any of its names, that fire now or ended within 300 seconds',
    query: z.object({ resource: z.string().min(1).max(300) }),
    answer: pageOf(
      z.object({
        source: z.string(),
        fingerprint: z.string(),
        status: z.enum(['firing', 'resolved', 'unknown']),
        name: z.string(),
        labels: z.record(z.string(), z.string()),
        annotations: z.record(z.string(), z.string()),
        startsAt: z.string(),
        endsAt: z.string().nullable(),
        count: z.number().int(),
        incidentId: z.string().nullable(),
      }),
    ),
    example: { items: [], nextCursor: null },
    async run({ scope, query }) {
      const rows = await activeAlerts(scope, query.resource)
      const items = rows.map(
        ({ source, fingerprint, status, name, labels, annotations, startsAt, endsAt, count, incidentId }) => ({
          source,
          fingerprint,
          status,
          name,
          labels,
          annotations,
          startsAt,
          endsAt,
          count,
          incidentId,
        }),
      )
      return { items, nextCursor: null }
    },
  })
}

type Read = (scope: Scope, id: string) => Promise<ResourceState | null>

const isWell = (status: string) => (status === 'nominal' ? 'nominal' : status === 'unknown' ? 'unknown' : 'degraded')

/** How each kind of resource is read, from the inventory as it was just made fresh. A kind without one has no health. */
const readers: Partial<Record<ResourceKind, Read>> = {
  async node(scope, id) {
    const node = await nodeById(scope, id)
    if (!node) return null
    const { status, reason, role, shard } = node
    const observed = `node ${id} is ${status}${reason ? ` (${reason})` : ''}`
    return { health: isWell(status), observed, fields: { status, role, shard } }
  },
  async shard(scope, id) {
    const shard = await shardById(scope, id)
    if (!shard) return null
    const { status, role } = shard
    return { health: isWell(status), observed: `shard ${id} is ${status}`, fields: { status, role } }
  },
  async tenant(scope, id) {
    const tenant = await tenantById(scope, id)
    if (!tenant) return null
    const { status, shard } = tenant
    return { health: isWell(status), observed: `tenant ${id} is ${status}`, fields: { status, shard } }
  },
  async host(scope, id) {
    const host = await hostById(scope, id)
    if (!host) return null
    const { state, rack, region } = host
    // A host that is to be emptied and is empty is as its operator wants it.
    const isDrained = state === 'draining' && (await vmCountOnHost(scope, id)) === 0
    const observed = isDrained ? `host ${id} is draining and empty` : `host ${id} is ${state}`
    return { health: state === 'live' || isDrained ? 'nominal' : 'degraded', observed, fields: { state, rack, region } }
  },
  async vm(scope, id) {
    const vm = await vmById(scope, id)
    if (!vm) return null
    const { running, host } = vm
    const observed = running ? `VM ${id} runs on ${host}` : `VM ${id} does not run`
    return { health: running ? 'nominal' : 'degraded', observed, fields: { running, host } }
  },
}

/** How a resource is now; `unknown` where the platform cannot be reached. */
export async function readResourceState(
  scope: Scope,
  deps: ApiDeps,
  { kind, id }: ResourceRef,
): Promise<ResourceState> {
  const { stale } = await deps.state.refresh()
  const read = readers[kind]
  if (!read && kind !== 'incident' && kind !== 'proposal')
    return { health: 'unknown', observed: `no source says how a ${kind.replaceAll('_', ' ')} does`, fields: {} }
  const state = await read?.(scope, id)
  if (!state) return { health: 'unknown', observed: `${kind} ${id} is not known`, fields: {} }
  if (stale) return { health: 'unknown', observed: 'the platform cannot be reached', fields: {} }
  return state
}

export function resourceStateRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/resources/{kind}/{id}/state',
    permission: 'read',
    tag: 'platform',
    summary: 'How a resource is now: its health, a sentence, and the fields that a mark compares',
    params: z.object({ kind: resourceKind, id: z.string().min(1).max(100) }),
    answer: resourceState,
    example: {
      health: 'nominal',
      observed: 'node node-web-osl-1a is nominal',
      fields: { status: 'nominal', role: 'web', shard: 'web-osl-1' },
    },
    run: ({ scope, params: { kind, id } }) => readResourceState(scope, deps, { kind, id }),
  })
}

export const resourceParams = z.object({ id: z.string().min(1).max(100) })

/** Set where the platform could not be asked: nothing is known of its health, and no old answer stands in for it. */
export const staleFlag = { stale: z.literal(true).optional() }
