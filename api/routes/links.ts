import { z } from '@hono/zod-openapi'
import { hosts, links } from '../../db/inventory/platform-rows.ts'
import type { Scope } from '../../db/scope.ts'
import {
  type LinkState,
  type LinkStatus,
  linkState,
  linkStatus,
  type Reachability,
  reachability,
} from '../../domain/platform.ts'
import type { ApiDeps } from '../deps.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

const tag = 'platform'
const hostId = z.string().min(1).max(100)
const onlyFresh = '`unknown` if the platform reports no links; 503 while the platform cannot be reached.'

/**
 * Reads hosts and links as the platform reports them now. Refuses while the platform cannot be
 * reached.
 */
async function readNetwork(scope: Scope, { state }: ApiDeps) {
  await state.requireCurrent()
  const all = await hosts(scope)
  const live = new Set(all.filter((host) => host.state === 'live').map((host) => host.id))
  const reported = await links(scope)
  return {
    links: reported,
    live,
    known: new Set(all.map((host) => host.id)),
    /**
     * Requires a live host at each end: without a live host there is no path, whatever the links
     * report.
     */
    areUnreported: (a: string, b: string) => reported.length === 0 && live.has(a) && live.has(b),
  }
}

function requireHosts(known: ReadonlySet<string>, ...ids: string[]): void {
  for (const id of ids) if (!known.has(id)) throw notFound(`host ${id}`)
}

const linksEndpoint = endpoint({
  method: 'get',
  path: '/links',
  permission: 'read',
  tag,
  summary: 'The link between two hosts, or all links',
  description: `With \`a\` and \`b\`: live only if the cable is up and both ends are live. ${onlyFresh}`,
  query: z.object({ a: hostId.optional(), b: hostId.optional() }),
  answer: z.union([
    z.object({
      a: z.string(),
      b: z.string(),
      status: linkStatus,
      live: z.boolean().nullable(),
      cost: z.number().nullable(),
    }),
    pageOf(linkState),
  ]),
  example: { a: 'host-osl-1', b: 'host-osl-2', status: 'live', live: true, cost: 10 },
  problems: [404],
  async run({ scope, query: { a, b } }, deps) {
    const { links, live, known, areUnreported } = await readNetwork(scope, deps)
    if (a === undefined && b === undefined) return { items: links, nextCursor: null }
    if (a === undefined || b === undefined) throw new Problem(422, 'INVALID', 'a and b: name both hosts or neither')
    requireHosts(known, a, b)
    const link = links.find((one) => (one.a === a && one.b === b) || (one.a === b && one.b === a))
    const isLive = link?.up === true && live.has(a) && live.has(b)
    const status: LinkStatus = isLive ? 'live' : areUnreported(a, b) ? 'unknown' : 'down'
    return { a, b, status, live: status === 'unknown' ? null : isLive, cost: isLive ? link.cost : null }
  },
})

const reachabilityEndpoint = endpoint({
  method: 'get',
  path: '/reachability',
  permission: 'read',
  tag,
  summary: 'Is there a healthy path between two hosts now?',
  description: `The cheapest path, over live links. ${onlyFresh}`,
  query: z.object({ from: hostId, to: hostId }),
  answer: z.object({
    from: z.string(),
    to: z.string(),
    status: reachability,
    reachable: z.boolean().nullable(),
    cost: z.number().nullable(),
    path: z.array(z.string()),
  }),
  example: {
    from: 'host-osl-1',
    to: 'host-ams-1',
    status: 'reachable',
    reachable: true,
    cost: 30,
    path: ['host-osl-1', 'host-ams-1'],
  },
  problems: [404],
  async run({ scope, query: { from, to } }, deps) {
    const { links, live, known, areUnreported } = await readNetwork(scope, deps)
    requireHosts(known, from, to)
    const found = cheapestPath(links, live, from, to)
    const status: Reachability = found ? 'reachable' : areUnreported(from, to) ? 'unknown' : 'unreachable'
    const reachable = status === 'unknown' ? null : found !== null
    return { from, to, status, reachable, cost: found?.cost ?? null, path: found?.path ?? [] }
  },
})

/**
 * Finds the cheapest path between two live hosts (Dijkstra). The path uses only links that are up
 * and whose ends are live. Null if there is no path. Costs are not negative.
 */
function cheapestPath(
  links: LinkState[],
  live: ReadonlySet<string>,
  from: string,
  to: string,
): { cost: number; path: string[] } | null {
  if (!live.has(from) || !live.has(to)) return null
  const neighbours = new Map<string, { host: string; cost: number }[]>()
  for (const { a, b, cost, up } of links) {
    if (!up || !live.has(a) || !live.has(b)) continue
    neighbours.set(a, [...(neighbours.get(a) ?? []), { host: b, cost }])
    neighbours.set(b, [...(neighbours.get(b) ?? []), { host: a, cost }])
  }
  const best = new Map<string, { cost: number; via: string | null }>([[from, { cost: 0, via: null }]])
  const settled = new Set<string>()
  for (;;) {
    let nearest: string | null = null
    for (const [host, { cost }] of best) {
      if (!settled.has(host) && (nearest === null || cost < (best.get(nearest)?.cost ?? 0))) nearest = host
    }
    if (nearest === null) return null
    const { cost } = best.get(nearest)!
    if (nearest === to) return { cost, path: pathTo(best, to) }
    settled.add(nearest)
    for (const next of neighbours.get(nearest) ?? []) {
      const known = best.get(next.host)
      if (!known || cost + next.cost < known.cost) best.set(next.host, { cost: cost + next.cost, via: nearest })
    }
  }
}

function pathTo(best: ReadonlyMap<string, { via: string | null }>, to: string): string[] {
  const path: string[] = []
  for (let host: string | null = to; host !== null; host = best.get(host)?.via ?? null) path.unshift(host)
  return path
}

export const linkRoutes = [linksEndpoint, reachabilityEndpoint]
