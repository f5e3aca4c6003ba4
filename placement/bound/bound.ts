import { isUp } from '../cluster/clock.ts'
import type { Kinds } from '../cluster/kinds.ts'
import { bestPacking, bestPackings, type Item } from './knapsack.ts'

/** What becomes of one host: who leaves it, by kind, who comes, and what that costs in migrations. */
type Pattern = { host: number; leaves: Int32Array; comes: Int32Array; cost: number }

/** The master program's answer: how much of each pattern, what one more VM of a kind would cost, and what a host is worth. */
export type Prices = { kind: number[]; host: number[]; shares: number[] }
export type Master = (patterns: Pattern[]) => Promise<Prices | null>

export type Bound = {
  /** No plan that keeps the rules needs fewer migrations. */
  atLeast: number
  /** Prices that prove it: `k` = atLeast - 1. Null for 0, which needs no proof. */
  proof: { k: number; price: number[] } | null
  patterns: Pattern[]
  shares: number[]
}

/** The most ways of leaving that are looked at in one round. */
const maxWays = 400_000

/**
 * A lower bound on migrations by column generation. For any prices, a plan with at most k evictions costs at least
 * `Σ count·price + Σ over hosts of the best that the host can do at these prices`; the master program finds good prices. HA groups and
 * identities are left out, which only lowers it. Stops at `upTo`, the migrations of a plan that is known.
 */
export async function lowerBound(kinds: Kinds, master: Master, upTo: number, deadlineMs: number): Promise<Bound> {
  const still: Pattern[] = kinds.has.map((_, host) => patternOf(kinds, host, [], []))
  const bound: Bound = { atLeast: 0, proof: null, patterns: still, shares: [] }
  for (let k = 0; k < upTo && !isUp(deadlineMs); k += 1) {
    if (waysOf(kinds, k) > maxWays) break
    const proved = await proveMoreThan(k, kinds, bound, master, deadlineMs)
    if (!proved) break
    bound.atLeast = k + 1
    bound.proof = { k, price: proved }
  }
  return bound
}

/** Prices at which k evictions do not do; null when there are none, or no time. */
async function proveMoreThan(
  k: number,
  kinds: Kinds,
  bound: Bound,
  master: Master,
  deadlineMs: number,
): Promise<number[] | null> {
  const patterns = bound.patterns.filter(({ cost }) => cost <= k)
  while (!isUp(deadlineMs)) {
    const prices = await master(patterns)
    if (!prices) return null
    const { value, better } = priced(kinds, prices, k, deadlineMs)
    if (value > k + 1e-6) return prices.kind
    bound.patterns = patterns
    bound.shares = prices.shares
    if (better.length === 0) return null
    patterns.push(...better)
  }
  return null
}

/** The bound at these prices, and for each host the pattern that the master program is missing. */
function priced(all: Kinds, prices: Prices, k: number, deadlineMs: number) {
  const { kinds, has, room } = all
  const price = prices.kind
  const largest = (resource: 'ram' | 'cpu') =>
    Math.max(...has.map((own, host) => room[host]![resource] + largestLeaving(kinds, own, k, resource)))
  const [ram, cpu] = [largest('ram'), largest('cpu')]
  const items = kinds.map((kind, index) => ({ ...kind, copies: kind.count, worth: price[index]! }))
  const best = bestPackings(items, ram, cpu)
  const width = cpu + 1
  let value = kinds.reduce((sum, { count }, index) => sum + count * price[index]!, 0)
  const better: Pattern[] = []
  for (const [host, own] of has.entries()) {
    const stays = own.reduce((sum, count, kind) => sum + count * price[kind]!, 0)
    let least = Number.POSITIVE_INFINITY
    let leaving: number[] = []
    const chosen: number[] = []
    const choose = (from: number, ram: number, cpu: number, cost: number) => {
      const reached = cost - best[ram * width + cpu]!
      if (reached < least - 1e-12) {
        least = reached
        leaving = [...chosen]
      }
      if (chosen.length === k) return
      for (let kind = from; kind < own.length; kind += 1) {
        let used = 0
        for (let at = chosen.length - 1; at >= 0 && chosen[at] === kind; at -= 1) used += 1
        if (used >= own[kind]!) continue
        chosen.push(kind)
        choose(kind, ram + kinds[kind]!.ramUp, cpu + kinds[kind]!.cpuUp, cost + 1 + price[kind]!)
        chosen.pop()
      }
    }
    choose(0, room[host]!.ram, room[host]!.cpu, 0)
    value += least - stays
    const reduced = least - stays - prices.host[host]!
    if (reduced < -1e-7 && !isUp(deadlineMs)) {
      better.push(patternOf(all, host, leaving, items))
    }
  }
  return { value, better }
}

/** The pattern in which these kinds leave and, where there are prices, whatever pays best comes. */
function patternOf({ kinds, room }: Kinds, host: number, leaving: number[], items: readonly Item[]): Pattern {
  const leaves = new Int32Array(kinds.length)
  for (const kind of leaving) leaves[kind]! += 1
  const ram = room[host]!.ram + leaving.reduce((sum, kind) => sum + kinds[kind]!.ramUp, 0)
  const cpu = room[host]!.cpu + leaving.reduce((sum, kind) => sum + kinds[kind]!.cpuUp, 0)
  const comes = new Int32Array(kinds.length)
  for (const [kind, count] of bestPacking(items, ram, cpu).entries()) comes[kind] = count
  return { host, leaves, comes, cost: leaving.length }
}

function largestLeaving(kinds: Kinds['kinds'], own: Int32Array, k: number, resource: 'ram' | 'cpu'): number {
  const sizes = [...own].flatMap(
    (count, kind) => Array(Math.min(count, k)).fill(kinds[kind]![resource === 'ram' ? 'ramUp' : 'cpuUp']) as number[],
  )
  return sizes
    .sort((a, b) => b - a)
    .slice(0, k)
    .reduce((sum, size) => sum + size, 0)
}

function waysOf({ has }: Kinds, k: number): number {
  let ways = 0
  for (const own of has) {
    const kinds = own.reduce((count, n) => count + (n > 0 ? 1 : 0), 0)
    let choose = 1
    for (let step = 1; step <= k; step += 1) choose = (choose * (kinds + step)) / step
    ways += choose
  }
  return ways
}
