import type { LinearModel, LpRow, SolverEngine, Term } from './assignment.ts'
import type { HostKind, PricedClass } from './triage-patterns.ts'

/** Builds the linear program whose prices may prove how many VMs of one priority stay down. */

/** The factor by which prices and weights become whole numbers. */
export const scale = 1_000_000
export const maxPrice = 500 * scale

export type TriageTerms = { classes: PricedClass[]; kinds: HostKind[] }
export type Level = { priority: number; count: number; above: [priority: number, count: number][] }
/** Integer prices by class, and integer weights of the higher priorities. */
export type Prices = { price: number[]; weights: Map<number, number> }

/** The number of VMs of each class that a host of one kind has at the end. */
export type Pattern = { kind: number; holds: Int32Array }

/** Counts how many VMs of a priority each member of a class has. */
export function countOf({ priorities }: PricedClass, of: number): number {
  return priorities.filter((each) => each === of).length
}

export function weightOf({ priorities }: PricedClass, { priority }: Level, weights: Map<number, number>): number {
  return priorities.reduce(
    (sum, each) => sum + (each === priority ? scale : each > priority ? (weights.get(each) ?? 0) : 0),
    0,
  )
}

export type LpPrices = { value: number; byClass: number[]; kindPrice: number[]; weights: Map<number, number> }

/**
 * Solves the program with these patterns: as few VMs of the level as possible stay down, with no
 * more VMs of higher priorities down than in the plan.
 */
export async function askPrices(
  { classes, kinds }: TriageTerms,
  level: Level,
  patterns: readonly Pattern[],
  engine: SolverEngine,
  untilMs: number,
): Promise<LpPrices | null> {
  const downOf = (index: number) => patterns.length + index
  const demand: LpRow[] = classes.map(({ count, priorities }, index) => ({
    terms: priorities.length > 0 && !isHeld(priorities, level) ? [[downOf(index), 1]] : [],
    atLeast: count,
  }))
  const hosts: LpRow[] = kinds.map((kind) => ({ terms: [], atLeast: -kind.hosts.length }))
  for (const [column, { kind, holds }] of patterns.entries()) {
    hosts[kind]!.terms.push([column, -1])
    for (const [index, count] of holds.entries()) if (count > 0) demand[index]!.terms.push([column, count])
  }
  const above: LpRow[] = level.above.map(([priority, count]) => ({
    terms: classes.flatMap((each, index): Term[] => {
      const own = countOf(each, priority)
      return own > 0 ? [[downOf(index), -own]] : []
    }),
    atLeast: -count,
  }))
  const model: LinearModel = {
    columns: patterns.length + classes.length,
    binaries: 0,
    objective: classes.flatMap((each, index): Term[] => {
      const own = countOf(each, level.priority)
      return own > 0 ? [[downOf(index), own]] : []
    }),
    rows: [...demand, ...hosts, ...above],
  }
  const answer = await engine.solve(model, Math.min(1_000, untilMs - performance.now()))
  if (answer.status !== 'optimal' || !answer.prices) return null
  const prices = answer.prices.map((price) => Math.max(0, price))
  const value = model.objective.reduce((sum, [column, cost]) => sum + cost * answer.values[column]!, 0)
  const weights = new Map(level.above.map(([priority], at) => [priority, prices[classes.length + kinds.length + at]!]))
  return { value, byClass: prices.slice(0, classes.length), kindPrice: prices.slice(classes.length), weights }
}

/**
 * Whether one of these priorities is higher than the level and has no VM down in the plan. Then no
 * VM with it may stay down.
 */
function isHeld(priorities: readonly number[], { priority, above }: Level): boolean {
  return priorities.some((each) => each > priority && !above.some(([known]) => known === each))
}

function toWhole({ classes }: TriageTerms, level: Level, { byClass, weights }: LpPrices): Prices {
  const whole = new Map(
    [...weights].map(([priority, weight]) => [priority, Math.min(maxPrice, Math.round(weight * scale))]),
  )
  // Gives the highest weight to a priority without VMs down, because its weight adds nothing.
  for (const priority of classes.flatMap(({ priorities }) => priorities))
    if (isHeld([priority], level)) whole.set(priority, maxPrice)
  const price = classes.map((each, index) => {
    const most = each.priorities.length === 0 ? maxPrice : weightOf(each, level, whole)
    return Math.min(Math.round(byClass[index]! * scale), most)
  })
  return { price, weights: whole }
}

/** Mixes the program's prices with the best prices so far. */
export function between(sought: TriageTerms, level: Level, centre: Prices, answer: LpPrices, keep: number): Prices {
  const { price, weights } = toWhole(sought, level, answer)
  const mix = (one: number, other: number) => Math.round(keep * one + (1 - keep) * other)
  return {
    price: price.map((each, index) => mix(centre.price[index]!, each)),
    weights: new Map(
      [...weights].map(([priority, weight]) => [priority, mix(centre.weights.get(priority) ?? 0, weight)]),
    ),
  }
}
