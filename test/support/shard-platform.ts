import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { EffectAnswer, Inventory } from '../../domain/platform.ts'
import type { Spine } from './spine.ts'

type ShardPlatform = {
  url: string
  /** Convergences that were truly begun, by their key, and how often. */
  begun: Map<string, { shard: string; times: number }>
  stop(): Promise<void>
}

/**
 * A platform over HTTP with so many ill shards that a convergence heals: it speaks the protocol of
 * `domain/platform.ts`, journals each key before it begins, and counts what it truly does.
 */
export async function shardPlatform(shards: number, workMs: number): Promise<ShardPlatform> {
  const state = inventoryOf(shards)
  const begun: ShardPlatform['begun'] = new Map()
  const journal = new Map<string, EffectAnswer>()

  async function converge(shard: string, key: string): Promise<EffectAnswer> {
    const known = journal.get(key)
    if (known) return known
    journal.set(key, { key, status: 'running', detail: 'at work', result: {} })
    begun.set(key, { shard, times: (begun.get(key)?.times ?? 0) + 1 })
    await sleep(workMs)
    const ill = state.nodes.filter((node) => node.shard === shard && node.status !== 'nominal')
    for (const node of ill) Object.assign(node, { status: 'nominal', reason: null })
    for (const each of state.shards) if (each.id === shard) each.status = 'nominal'
    const answer: EffectAnswer = {
      key,
      status: 'done',
      detail: `converged ${shard}`,
      result: {},
      changed: ill.map(({ id }) => `${id}: restarted`),
    }
    journal.set(key, answer)
    return answer
  }

  const server = createServer(async ({ method, url = '/', headers }, response) => {
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const { pathname } = new URL(url, 'http://platform')
    const [, , kind, id, verb] = pathname.split('/')
    if (kind === 'inventory') return json(200, state)
    if (kind === 'effects') {
      const known = journal.get(decodeURIComponent(id ?? ''))
      return json(known ? 200 : 404, known ?? {})
    }
    if (kind !== 'shards' || verb !== 'converge') return json(404, {})
    if (method === 'GET') {
      const ill = state.nodes.filter(({ shard, status }) => shard === id && status !== 'nominal')
      return json(200, { nodes: ill.map((node) => ({ id: node.id, changes: ['restart its process'] })) })
    }
    return json(200, await converge(String(id), String(headers['idempotency-key'])))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    begun,
    stop: () => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()),
  }
}

function inventoryOf(count: number): Inventory {
  const ids = Array.from({ length: count }, (_, n) => `db-${n}`)
  const node = (shard: string, role: 'primary' | 'replica') => ({
    id: `node-${shard}-${role}`,
    shard,
    region: 'osl',
    role,
    hostname: `${shard}-${role}`,
    ip: '127.0.0.1',
    status: role === 'replica' ? ('degraded' as const) : ('nominal' as const),
    reason: role === 'replica' ? 'replica is 42 s behind' : null,
    replicationLagSeconds: role === 'replica' ? 42 : null,
    diskUsedBytes: 1,
    diskQuotaBytes: 2,
    diskByDirectory: { data: 1 },
  })
  return {
    regions: [{ id: 'osl' }],
    shards: ids.map((id) => ({ id, region: 'osl', role: 'database', status: 'degraded', config: {} })),
    nodes: ids.flatMap((id) => [node(id, 'primary'), node(id, 'replica')]),
    tenants: [],
    hosts: [],
    vms: [],
    links: [],
  }
}

type FullDisks = { odd: string[]; incidents: Incident[]; logs: IncidentEvent[][] }

/**
 * Fills one disk on each web shard, those at the `odd` places with a tenant's data, which no
 * convergence mends; then lets a worker loose and waits for the ends. The spine needs
 * `LAB_WEB_SHARDS` of as many and no worker yet.
 */
export async function fullDisks(spine: Spine, oddAt: readonly number[]): Promise<FullDisks> {
  const shards = await spine.get<{ items: { id: string }[] }>('/resources?q=web-&kind=shard&limit=100')
  const nodes = await Promise.all(
    shards.items.map(async ({ id }) => {
      const { items } = await spine.get<{ items: { id: string }[] }>(`/shards/${id}/nodes`)
      return items[0]?.id as string
    }),
  )
  const odd = oddAt.map((at) => nodes[at] as string)
  for (const node of nodes) await spine.lab.break(odd.includes(node) ? 'disk_pressure_tenant' : 'disk_pressure', node)
  const all = () => spine.incidents('?type=disk_pressure&limit=100')
  await spine.until(`${nodes.length} incidents`, async () => (await all()).length === nodes.length)
  await spine.start('worker')
  const incidents = await spine.until(`${nodes.length} ends`, async () => {
    const found = await all()
    return found.every((incident) => ['resolved', 'escalated'].includes(incident.status)) && found
  })
  return { odd, incidents, logs: await Promise.all(incidents.map((incident) => spine.events(incident.id))) }
}

/** What an investigation asked of its model. */
export function costOf(log: readonly IncidentEvent[]): { turns: number; tokens: number } {
  const usages = log.flatMap((event) => (event.kind === 'model_answered' ? [event.metadata.usage] : []))
  return {
    turns: usages.length,
    tokens: usages.reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens, 0),
  }
}

/** When a run was at work, by the times of its rows. */
export function spanOf(events: IncidentEvent[]): { from: number; to: number } {
  const end = events.findLast((event) => event.kind === 'resolved' || event.kind === 'escalated')
  return { from: Date.parse(events.find((event) => event.kind === 'claimed')?.at ?? ''), to: Date.parse(end?.at ?? '') }
}

/** The most that were at work at once. */
export function mostAtOnce(spans: { from: number; to: number }[]): number {
  return Math.max(...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length))
}
