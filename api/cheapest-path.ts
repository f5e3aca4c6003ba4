import type { LinkState } from '../domain/platform.ts'

/**
 * The cheapest way from one live host to another over links that are up and have both ends live (Dijkstra); null when there
 * is none. Costs are not negative.
 */
export function cheapestPath(
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
    if (nearest === to) return { cost, path: wayBack(best, to) }
    settled.add(nearest)
    for (const next of neighbours.get(nearest) ?? []) {
      const known = best.get(next.host)
      if (!known || cost + next.cost < known.cost) best.set(next.host, { cost: cost + next.cost, via: nearest })
    }
  }
}

function wayBack(best: ReadonlyMap<string, { via: string | null }>, to: string): string[] {
  const path: string[] = []
  for (let host: string | null = to; host !== null; host = best.get(host)?.via ?? null) path.unshift(host)
  return path
}
