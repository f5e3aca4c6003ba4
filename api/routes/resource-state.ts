import { z } from '@hono/zod-openapi'
import { clusterSourcesOf } from '../../db/inventory/cluster-sources.ts'
import { hostById, nodeById, shardById, tenantById, vmById, vmCountOnHost } from '../../db/inventory/platform-rows.ts'
import { listSources } from '../../db/inventory/sources.ts'
import { type Scope, systemScope } from '../../db/scope.ts'
import { isNearlyFull } from '../../domain/connection-limit.ts'
import { formatCount } from '../../domain/format.ts'
import {
  type ResourceKind,
  type ResourceRef,
  type ResourceState,
  resourceKind,
  resourceState,
} from '../../domain/registry.ts'
import { SourceError } from '../../sources/kind.ts'
import { readDatabaseState, readStateOf } from '../../sources/kinds.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'

type Read = (scope: Scope, id: string) => Promise<ResourceState | null>

const isWell = (status: string) => (status === 'nominal' ? 'nominal' : status === 'unknown' ? 'unknown' : 'degraded')

/**
 * Functions that read the state of each kind of resource from the current inventory. A kind without
 * a function has no health.
 */
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
    // Counts a draining host without VMs as healthy, because this is the state that its operator
    // wants.
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

/** Reads the state of a resource. The state is `unknown` if the platform cannot be reached. */
export async function readResourceState(
  scope: Scope,
  deps: ApiDeps,
  { kind, id }: ResourceRef,
): Promise<ResourceState> {
  if (kind === 'database') return await readDatabase(deps, id)
  const inCluster = await readInCluster(deps, { kind, id })
  if (inCluster) return inCluster
  const { stale } = await deps.state.refresh()
  const read = readers[kind]
  if (!read && kind !== 'incident' && kind !== 'proposal')
    return {
      health: 'unknown',
      observed: `no source reports the health of a ${kind.replaceAll('_', ' ')}`,
      fields: {},
    }
  const state = await read?.(scope, id)
  if (!state) return { health: 'unknown', observed: `${kind} ${id} is not known`, fields: {} }
  if (stale) return { health: 'unknown', observed: 'the platform cannot be reached', fields: {} }
  return state
}

/**
 * Reads an object of a cluster from the cluster's source. Null if no cluster has the object, or the
 * platform has it too.
 */
async function readInCluster(deps: ApiDeps, { kind, id }: ResourceRef): Promise<ResourceState | null> {
  const [known] = await clusterSourcesOf(deps.db, { kind, id })
  if (!known || (kind === 'node' && (await nodeById(systemScope(deps.db), id)))) return null
  const source = (await listSources(deps.db)).find(({ name }) => name === known.source)
  try {
    return source ? await readStateOf(source, { kind, id, name: known.name }, deps.sources) : null
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    return { health: 'unknown', observed: error.message, fields: {} }
  }
}

/** Reads a database server from its own source. A database of the inventory may have no source. */
async function readDatabase(deps: ApiDeps, id: string): Promise<ResourceState> {
  const unknown = (observed: string): ResourceState => ({ health: 'unknown', observed, fields: {} })
  const source = (await listSources(deps.db)).find(({ name }) => name === id)
  try {
    const state = source && (await readDatabaseState(source, deps.sources))
    if (!state) return unknown('no source reports the health of a database')
    const { product, version, role, connections, waiting, replication } = state
    const isFull = isNearlyFull(connections)
    const ill = replication.filter(({ isIll }) => isIll).map(({ text }) => text)
    const facts = [
      `${product} ${version}, ${role}`,
      `${connections.used} of ${connections.max} connections in use`,
      waiting === 0 ? 'no session waits for a lock' : `${formatCount(waiting, 'session')} waiting for a lock`,
      ...ill,
    ]
    const isNominal = !isFull && waiting === 0 && ill.length === 0
    const fields = { role, full: isFull, waiting: waiting > 0, ill: ill.length }
    return { health: isNominal ? 'nominal' : 'degraded', observed: `${id}: ${facts.join('; ')}`, fields }
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    return unknown(error.message)
  }
}

export const resourceStateRoutes = endpoint({
  method: 'get',
  path: '/resources/{kind}/{id}/state',
  permission: 'read',
  tag: 'platform',
  summary: 'The current state of a resource: its health, a sentence, and the fields that a mark compares',
  params: z.object({ kind: resourceKind, id: z.string().min(1).max(128) }),
  answer: resourceState,
  example: {
    health: 'nominal',
    observed: 'node node-web-osl-1a is nominal',
    fields: { status: 'nominal', role: 'web', shard: 'web-osl-1' },
  },
  run: ({ scope, params: { kind, id } }, deps) => readResourceState(scope, deps, { kind, id }),
})
