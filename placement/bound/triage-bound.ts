import type { Instance } from '../cluster/instance.ts'
import type { Move } from '../search/search.ts'
import type { LinearModel, LpRow, SolverEngine, Term } from './assignment.ts'
import {
  bestPatterns,
  chooseUnits,
  type HostKind,
  listHostKinds,
  type PricedClass,
  type Units,
} from './triage-patterns.ts'

/** Prices that show of one priority that no choice leaves fewer of it down; by VM of the instance. `triage-certificate.ts` says how. */
export type ProvedLevel = {
  priority: number
  down: number
  scale: number
  units: Units
  weights: Record<number, number>
  price: number[]
}

/** Prices and weights are whole. */
const scale = 1_000_000
const maxPrice = 500 * scale
/** Rounds of asking for prices, for one table. */
const maxRounds = 60
/** Sizes by which a price of RAM or CPU alone is tried. */
const maxScarceTries = 4

type Sought = {
  instance: Instance
  classes: PricedClass[]
  kinds: HostKind[]
  down: [priority: number, count: number][]
}
type Level = { priority: number; count: number; above: [priority: number, count: number][] }
/** Whole prices by class and weights by higher priority. */
type Prices = { price: number[]; weights: Map<number, number> }

/**
 * For each priority of which somebody stays down, the highest first, prices that show that it has to be so many; stops at the first for which
 * none are found. `mayAsk`: without it only prices by RAM or CPU alone are tried, which a sum finds.
 */
export async function proveLevels(
  instance: Instance,
  plan: { moves: readonly Move[]; unplaced: readonly number[] },
  engine: SolverEngine | null,
  untilMs: number,
): Promise<ProvedLevel[]> {
  const kinds = listHostKinds(instance)
  if (!kinds) return []
  const { classes, classOf } = listClasses(instance)
  const down = countDown(instance, plan.unplaced)
  const sought: Sought = { instance, classes, kinds, down }
  const known = engine ? placePatterns(sought, classOf, plan) : []
  const levels: ProvedLevel[] = []
  for (const [index, [priority, count]] of down.entries()) {
    if (isOver(untilMs)) break
    const level: Level = { priority, count, above: down.slice(0, index) }
    const proved =
      proveByScarcity(sought, level) ?? (engine && (await proveByPatterns(sought, level, known, engine, untilMs)))
    if (!proved) break
    const price = classOf.map((at) => (at < 0 ? 0 : proved.price[at]!))
    levels.push({
      priority,
      down: count,
      scale,
      units: proved.units,
      weights: Object.fromEntries(proved.weights),
      price,
    })
  }
  return levels
}

/** Not `isUp`: time that ends the search for a proof has no part in which plan is found. */
function isOver(untilMs: number): boolean {
  return performance.now() > untilMs - 10
}

function countDown({ priorities }: Instance, unplaced: readonly number[]): [number, number][] {
  const all = Map.groupBy(
    unplaced.flatMap((vm) => priorities[vm]!),
    (priority) => priority,
  )
  return [...all].map(([priority, own]): [number, number] => [priority, own.length]).sort((a, b) => b[0] - a[0])
}

/** VMs of one size that may go to the same hosts, of the same priorities where they are stranded. */
function listClasses({ evacuees, movable, home, rule, allows, vmRam, vmCpu, priorities, groupsOf, weight }: Instance) {
  const isEvacuee = new Set(evacuees)
  const index = new Map<string, number>()
  const classes: PricedClass[] = []
  const classOf = home.map((at, vm) => {
    if (!isEvacuee.has(vm) && !movable[vm]) return -1
    const own = isEvacuee.has(vm) ? [...priorities[vm]!].sort((a, b) => b - a) : []
    const open = allows[rule[vm]!]!.map((may, host) => may || (movable[vm] === true && at === host))
    const key = JSON.stringify([vmRam[vm], vmCpu[vm], own, open.map(Number).join('')])
    const known = index.get(key) ?? classes.length
    if (known === classes.length) {
      index.set(key, known)
      classes.push({ ram: vmRam[vm]!, cpu: vmCpu[vm]!, priorities: own, open, count: 0, groups: [] })
    }
    classes[known]!.count += 1
    classes[known]!.groups.push(weight[vm] === 1 ? (groupsOf[vm]![0] ?? null) : null)
    return known
  })
  return { classes, classOf }
}

/** How many of a class of stranded VMs are of this priority. */
function countOf({ priorities }: PricedClass, of: number): number {
  return priorities.filter((each) => each === of).length
}

function weightOf({ priorities }: PricedClass, { priority }: Level, weights: Map<number, number>): number {
  return priorities.reduce(
    (sum, each) => sum + (each === priority ? scale : each > priority ? (weights.get(each) ?? 0) : 0),
    0,
  )
}

/** All that are worth less of every host's best: more than so many of the level weigh, and the level is proved. */
function isProof(
  { classes, kinds }: Sought,
  { above, count }: Level,
  { price, weights }: Prices,
  units: Units,
): boolean {
  const best = bestPatterns(classes, price, kinds, units, false)
  if (!best) return false
  const all = classes.reduce((sum, each, index) => sum + each.count * price[index]!, 0)
  const held = best.reduce((sum, { worth, kind }) => sum + worth * kinds[kind]!.hosts.length, 0)
  return all - held - above.reduce((sum, [each, n]) => sum + n * (weights.get(each) ?? 0), 0) > scale * (count - 1)
}

/** A price by RAM or by CPU alone: what is short in total, or on the only hosts for some. */
function proveByScarcity(sought: Sought, level: Level): (Prices & { units: Units }) | null {
  const { classes } = sought
  for (const size of ['ram', 'cpu'] as const) {
    const units = chooseUnits(sought, size)
    const own = classes.filter((each) => countOf(each, level.priority) > 0).map((each) => each[size])
    const tries = [...new Set(own)].sort((a, b) => b - a).slice(0, maxScarceTries)
    for (const one of tries) {
      const perUnit = scale / one
      const heaviest = Math.ceil(perUnit * Math.max(...classes.map((each) => each[size])))
      const weights = new Map(
        [...new Set(classes.flatMap(({ priorities }) => priorities))]
          .filter((each) => each > level.priority)
          .map((each) => [each, Math.min(maxPrice, heaviest)]),
      )
      const price = classes.map((each) => {
        const most = each.priorities.length === 0 ? maxPrice : weightOf(each, level, weights)
        return Math.min(Math.floor(each[size] * perUnit), most)
      })
      if (isProof(sought, level, { price, weights }, units)) return { price, weights, units }
    }
  }
  return null
}

/** What a host of this kind holds in the end, by class. */
type Pattern = { kind: number; holds: Int32Array }

/** What is on each host now and after the plan: with these the program has an answer from the beginning. */
function placePatterns(
  { instance, classes, kinds }: Sought,
  classOf: readonly number[],
  { moves }: { moves: readonly Move[] },
): Pattern[] {
  const end = [...instance.home]
  for (const { vm, to } of moves) end[vm] = to
  const kindOf = new Map(kinds.flatMap(({ hosts }, kind) => hosts.map((host) => [host, kind] as const)))
  return [instance.home, end].flatMap((place) => {
    const patterns = [...kindOf].map(([host, kind]) => ({ host, kind, holds: new Int32Array(classes.length) }))
    const byHost = new Map(patterns.map((pattern) => [pattern.host, pattern]))
    for (const [vm, host] of place.entries()) {
      const holds = byHost.get(host)?.holds
      const index = classOf[vm]!
      if (holds && index >= 0) holds[index]! += 1
    }
    return patterns.map(({ kind, holds }) => ({ kind, holds }))
  })
}

/** Column generation: the patterns of hosts that would leave fewer of this priority down, until their prices prove that none do. */
async function proveByPatterns(
  sought: Sought,
  level: Level,
  known: Pattern[],
  engine: SolverEngine,
  untilMs: number,
): Promise<(Prices & { units: Units }) | null> {
  const { classes, kinds } = sought
  for (const units of listTables(sought)) {
    const fits = ({ kind, holds }: Pattern) => {
      const { ram, cpu } = kinds[kind]!
      const used = (size: 'ram' | 'cpu', unit: number) =>
        holds.reduce((sum, count, index) => sum + count * Math.floor(classes[index]![size] / unit), 0)
      return used('ram', units[0]) <= Math.floor(ram / units[0]) && used('cpu', units[1]) <= Math.floor(cpu / units[1])
    }
    const patterns = known.filter(fits)
    for (let round = 0; round < maxRounds && !isOver(untilMs); round += 1) {
      const answer = await askPrices(sought, level, patterns, engine, untilMs)
      if (!answer) return null
      // Every placement that the patterns mix leaves fewer down: this table cannot prove it.
      if (answer.value <= level.count - 1 + 1e-6) break
      const { price, weights } = toWhole(sought, level, answer)
      if (isProof(sought, level, { price, weights }, units)) return { price, weights, units }
      const better = bestPatterns(classes, price, kinds, units, true)
      if (!better) break
      const fresh = better.filter(({ worth, kind }) => worth > answer.kindPrice[kind]! * scale + scale * 1e-5)
      if (fresh.length === 0) break
      for (const { kind, holds } of fresh) {
        const pattern = { kind, holds }
        patterns.push(pattern)
        known.push(pattern)
      }
    }
    if (isOver(untilMs)) return null
  }
  return null
}

/** Coarse tables first. */
function listTables(sought: Sought): Units[] {
  const tables = [
    chooseUnits(sought, 'both', 12_000),
    chooseUnits(sought, 'ram'),
    chooseUnits(sought, 'cpu'),
    chooseUnits(sought, 'both', 200_000),
  ]
  return tables.filter((one, index) => tables.findIndex((other) => other.join() === one.join()) === index)
}

type LpPrices = { value: number; byClass: number[]; kindPrice: number[]; weights: Map<number, number> }

/** The program over these patterns: as few of the level down as can be, with no more of higher ones than in the plan. */
async function askPrices(
  { classes, kinds }: Sought,
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

/** Is one of a higher priority of which the plan leaves nobody down, so that nobody may be? */
function isHeld(priorities: readonly number[], { priority, above }: Level): boolean {
  return priorities.some((each) => each > priority && !above.some(([known]) => known === each))
}

function toWhole({ classes }: Sought, level: Level, { byClass, weights }: LpPrices): Prices {
  const whole = new Map(
    [...weights].map(([priority, weight]) => [priority, Math.min(maxPrice, Math.round(weight * scale))]),
  )
  // A priority of which nobody is down weighs nothing in the plan: any weight of it will do.
  for (const priority of classes.flatMap(({ priorities }) => priorities))
    if (isHeld([priority], level)) whole.set(priority, maxPrice)
  const price = classes.map((each, index) => {
    const most = each.priorities.length === 0 ? maxPrice : weightOf(each, level, whole)
    return Math.min(Math.round(byClass[index]! * scale), most)
  })
  return { price, weights: whole }
}
