import type { Instance } from '../cluster/instance.ts'
import { isUp, type SizeClasses } from '../cluster/size-classes.ts'
import {
  bestPacking,
  bestPackings,
  type KnapsackItem,
  type LinearModel,
  type LpRow,
  type SolverEngine,
  type Term,
} from './assignment.ts'

/**
 * A change of one host: the VMs that leave and arrive, by size class, and its cost in migrations.
 */
type Pattern = { host: number; leaves: Int32Array; comes: Int32Array; cost: number }

/**
 * The solution of the master program: the share of each pattern, the cost of one more VM of each
 * size class, and the worth of each host.
 */
type DualPrices = { byClass: number[]; host: number[]; shares: number[] }
type Master = (patterns: Pattern[]) => Promise<DualPrices | null>

export type LowerBound = {
  /** The number of migrations that every plan needs which keeps the rules. */
  atLeast: number
  /** The prices that prove `atLeast`, with `k` = atLeast - 1. Null for 0, which needs no proof. */
  proof: { k: number; price: number[] } | null
  patterns: Pattern[]
  shares: number[]
}

/** The most combinations of leaving VMs that one round examines. */
const maxWays = 400_000

/**
 * Computes a lower bound on migrations by column generation. For any prices, a plan with at most k
 * evictions costs at least `Σ count·price + Σ over hosts of the host's best at these prices`; the
 * master program finds good prices. Ignores HA groups and which VM is which, so that the bound may
 * be too low, but never too high. Stops at `upTo`, the migrations of a known plan.
 */
export async function lowerBound(
  classes: SizeClasses,
  master: Master,
  upTo: number,
  deadlineMs: number,
): Promise<LowerBound> {
  const still: Pattern[] = classes.has.map((_, host) => buildPattern(classes, host, [], []))
  const bound: LowerBound = { atLeast: 0, proof: null, patterns: still, shares: [] }
  for (let k = 0; k < upTo && !isUp(deadlineMs); k += 1) {
    if (countWays(classes, k) > maxWays) break
    const proved = await proveMoreThan(k, classes, bound, master, deadlineMs)
    if (!proved) break
    bound.atLeast = k + 1
    bound.proof = { k, price: proved }
  }
  return bound
}

/**
 * Finds prices at which k evictions are not enough. Null for no such prices, or if time is over.
 */
async function proveMoreThan(
  k: number,
  classes: SizeClasses,
  bound: LowerBound,
  master: Master,
  deadlineMs: number,
): Promise<number[] | null> {
  const patterns = bound.patterns.filter(({ cost }) => cost <= k)
  while (!isUp(deadlineMs)) {
    const prices = await master(patterns)
    if (!prices) return null
    const { value, better } = evaluatePrices(classes, prices, k, deadlineMs)
    if (value > k + 1e-6) return prices.byClass
    bound.patterns = patterns
    bound.shares = prices.shares
    if (better.length === 0) return null
    patterns.push(...better)
  }
  return null
}

/**
 * Returns the bound at these prices, and the pattern of each host that the master program lacks.
 */
function evaluatePrices(all: SizeClasses, prices: DualPrices, k: number, deadlineMs: number) {
  const { classes, has, room } = all
  const price = prices.byClass
  const largest = (resource: 'ram' | 'cpu') =>
    Math.max(...has.map((own, host) => room[host]![resource] + largestLeaving(classes, own, k, resource)))
  const [ram, cpu] = [largest('ram'), largest('cpu')]
  const items = classes.map((sizeClass, index) => ({ ...sizeClass, copies: sizeClass.count, worth: price[index]! }))
  const best = bestPackings(items, ram, cpu)
  const width = cpu + 1
  let value = classes.reduce((sum, { count }, index) => sum + count * price[index]!, 0)
  const better: Pattern[] = []
  for (const [host, own] of has.entries()) {
    const stays = own.reduce((sum, count, sizeClass) => sum + count * price[sizeClass]!, 0)
    let min = Number.POSITIVE_INFINITY
    let leaving: number[] = []
    const chosen: number[] = []
    const choose = (from: number, ram: number, cpu: number, cost: number) => {
      const reached = cost - best[ram * width + cpu]!
      if (reached < min - 1e-12) {
        min = reached
        leaving = [...chosen]
      }
      if (chosen.length === k) return
      for (let sizeClass = from; sizeClass < own.length; sizeClass += 1) {
        let used = 0
        for (let at = chosen.length - 1; at >= 0 && chosen[at] === sizeClass; at -= 1) used += 1
        if (used >= own[sizeClass]!) continue
        chosen.push(sizeClass)
        choose(
          sizeClass,
          ram + classes[sizeClass]!.ramUp,
          cpu + classes[sizeClass]!.cpuUp,
          cost + 1 + price[sizeClass]!,
        )
        chosen.pop()
      }
    }
    choose(0, room[host]!.ram, room[host]!.cpu, 0)
    value += min - stays
    const reduced = min - stays - prices.host[host]!
    if (reduced < -1e-7 && !isUp(deadlineMs)) {
      better.push(buildPattern(all, host, leaving, items))
    }
  }
  return { value, better }
}

/**
 * Builds the pattern of a host which VMs of these classes leave. With prices, the VMs that are
 * worth most arrive.
 */
function buildPattern(
  { classes, room }: SizeClasses,
  host: number,
  leaving: number[],
  items: readonly KnapsackItem[],
): Pattern {
  const leaves = new Int32Array(classes.length)
  for (const sizeClass of leaving) leaves[sizeClass]! += 1
  const ram = room[host]!.ram + leaving.reduce((sum, sizeClass) => sum + classes[sizeClass]!.ramUp, 0)
  const cpu = room[host]!.cpu + leaving.reduce((sum, sizeClass) => sum + classes[sizeClass]!.cpuUp, 0)
  const comes = new Int32Array(classes.length)
  for (const [sizeClass, count] of bestPacking(items, ram, cpu).entries()) comes[sizeClass] = count
  return { host, leaves, comes, cost: leaving.length }
}

function largestLeaving(classes: SizeClasses['classes'], own: Int32Array, k: number, resource: 'ram' | 'cpu'): number {
  const sizes = [...own].flatMap(
    (count, sizeClass) =>
      Array(Math.min(count, k)).fill(classes[sizeClass]![resource === 'ram' ? 'ramUp' : 'cpuUp']) as number[],
  )
  return sizes
    .sort((a, b) => b - a)
    .slice(0, k)
    .reduce((sum, size) => sum + size, 0)
}

function countWays({ has }: SizeClasses, k: number): number {
  let ways = 0
  for (const own of has) {
    const classes = own.reduce((count, n) => count + (n > 0 ? 1 : 0), 0)
    let choose = 1
    for (let step = 1; step <= k; step += 1) choose = (choose * (classes + step)) / step
    ways += choose
  }
  return ways
}

/** Builds the configuration program. An unplaced VM of a size class costs `slackCost`. */
export function buildMaster(
  { classes, has }: SizeClasses,
  engine: SolverEngine,
  slackCost: number,
  untilMs: number,
): Master {
  return async (patterns) => {
    const demand: LpRow[] = classes.map(({ count }, sizeClass) => ({
      terms: [[patterns.length + sizeClass, 1]],
      atLeast: count,
    }))
    const one: LpRow[] = has.map(() => ({ terms: [], equal: 1 }))
    const objective: Term[] = classes.map((_, sizeClass) => [patterns.length + sizeClass, slackCost])
    for (const [column, { host, leaves, comes, cost }] of patterns.entries()) {
      if (cost > 0) objective.push([column, cost])
      one[host]!.terms.push([column, 1])
      for (const [sizeClass, count] of has[host]!.entries()) {
        const there = count - leaves[sizeClass]! + comes[sizeClass]!
        if (there > 0) demand[sizeClass]!.terms.push([column, there])
      }
    }
    const model: LinearModel = {
      columns: patterns.length + classes.length,
      binaries: 0,
      objective,
      rows: [...demand, ...one],
    }
    const answer = await engine.solve(model, untilMs - performance.now())
    if (answer.status !== 'optimal' || !answer.prices) return null
    return {
      byClass: answer.prices.slice(0, classes.length).map((price) => Math.max(0, price)),
      host: answer.prices.slice(classes.length),
      shares: answer.values.slice(0, patterns.length),
    }
  }
}

/**
 * Lists the VMs that leave their host in the patterns of the bound, for the pairs of host and class
 * that are used most.
 */
export function likelyMovers(
  instance: Instance,
  { classOf }: SizeClasses,
  { patterns, shares }: LowerBound,
  max: number,
): number[] {
  const pairs = new Map<string, number>()
  for (const [index, { host, leaves, cost }] of patterns.entries()) {
    if (cost === 0) continue
    for (const [sizeClass, count] of leaves.entries()) {
      if (count === 0) continue
      const key = `${host} ${sizeClass}`
      pairs.set(key, Math.max(pairs.get(key) ?? 0, shares[index] ?? 0))
    }
  }
  const used = [...pairs].sort((a, b) => b[1] - a[1]).slice(0, max)
  const chosen = new Set(used.map(([key]) => key))
  return instance.home.flatMap((host, vm) => (instance.movable[vm] && chosen.has(`${host} ${classOf[vm]}`) ? [vm] : []))
}
