import type { Instance } from '../cluster/instance.ts'
import type { Move } from '../search/search.ts'
import type { SolverEngine } from './assignment.ts'
import {
  type BestPattern,
  bestPatterns,
  chooseUnits,
  listHostKinds,
  type PricedClass,
  type Units,
} from './triage-patterns.ts'
import {
  askPrices,
  between,
  countOf,
  type Level,
  type LpPrices,
  maxPrice,
  type Pattern,
  type Prices,
  scale,
  type TriageTerms,
  weightOf,
} from './triage-program.ts'

/**
 * Prices that prove for one priority that no choice leaves fewer of its VMs down. `price` is by VM
 * of the instance. See `triage-certificate.ts`.
 */
export type ProvedLevel = {
  priority: number
  down: number
  scale: number
  units: Units
  weights: Record<number, number>
  price: number[]
}

/** The most levels of a plan. Each priority of which VMs stay down is a level. */
const maxLevels = 20
/** The most classes, and the most pairs of a class and a kind of host, for a search of prices. */
const maxClasses = 2_000
const maxPairs = 200_000
/** The most rounds of solving for prices with one table. */
const maxRounds = 60
/** Number of sizes of VMs by which a price of RAM or CPU alone is tried. */
const maxScarceTries = 3
/** The shares of RAM, with CPU as the remainder, that are tried for a price. */
const shares = [1, 0, 0.5, 0.75, 0.25]
/** The weight that the best prices so far have in the next prices that are tried. */
const keptOfBest = 0.7

/**
 * Finds prices that prove the number of VMs down, for each priority with VMs down, the highest
 * first. Stops at the first priority without a proof. Without an `engine` it tries only prices by
 * size, which need only sums.
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
  if (classes.length > maxClasses || classes.length * kinds.length > maxPairs) return []
  const down = countDown(instance, plan.unplaced)
  const sought: TriageTerms = { classes, kinds }
  const known = engine ? placePatterns(instance, sought, classOf, plan) : []
  const levels: ProvedLevel[] = []
  for (const [index, [priority, count]] of down.slice(0, maxLevels).entries()) {
    if (isOver(untilMs)) break
    const level: Level = { priority, count, above: down.slice(0, index) }
    const start = priceByScarcity(sought, level, untilMs)
    if (!start) break
    const proved = isProof(level, start)
      ? start
      : engine && (await proveByPatterns(sought, level, known, start, { engine, untilMs }))
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

/**
 * Whether the time is over. Does not use `isUp`, because the end of the search for a proof changes
 * no plan.
 */
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

/** Groups VMs by size, by possible hosts and, for stranded VMs, by priority. */
function listClasses({ evacuees, movable, home, rule, allows, vmRam, vmCpu, priorities, groupsOf, weight }: Instance) {
  const isEvacuee = new Set(evacuees)
  const hostsOf = allows.map((open) => open.map(Number).join(''))
  const index = new Map<string, number>()
  const classes: PricedClass[] = []
  const classOf = home.map((at, vm) => {
    if (!isEvacuee.has(vm) && !movable[vm]) return -1
    const own = isEvacuee.has(vm) ? [...priorities[vm]!].sort((a, b) => b - a) : []
    const open = allows[rule[vm]!]!
    // Adds the present host, where a VM may stay even if the rules forbid the host.
    const stays = movable[vm] && !open[at] ? at : -1
    const key = JSON.stringify([vmRam[vm], vmCpu[vm], own, hostsOf[rule[vm]!], stays])
    const known = index.get(key) ?? classes.length
    if (known === classes.length) {
      index.set(key, known)
      const all = stays < 0 ? open : open.with(stays, true)
      classes.push({ ram: vmRam[vm]!, cpu: vmCpu[vm]!, priorities: own, open: all, count: 0, groups: [] })
    }
    classes[known]!.count += 1
    classes[known]!.groups.push(weight[vm] === 1 ? (groupsOf[vm]![0] ?? null) : null)
    return known
  })
  return { classes, classOf }
}

/**
 * `value`: the worth of all VMs minus the highest worth that the hosts can hold, as a number of VMs
 * of the level. `patterns`: the contents of hosts with this worth.
 */
type Shown = { value: number; patterns: BestPattern[] }

function evaluate(
  { classes, kinds }: TriageTerms,
  level: Level,
  { price, weights }: Prices,
  units: Units,
): Shown | null {
  const patterns = bestPatterns(classes, price, kinds, units)
  if (!patterns) return null
  const all = classes.reduce((sum, each, index) => sum + each.count * price[index]!, 0)
  const held = patterns.reduce((sum, { worth, kind }) => sum + worth * kinds[kind]!.hosts.length, 0)
  const above = level.above.reduce((sum, [each, n]) => sum + n * (weights.get(each) ?? 0), 0)
  return { value: (all - held - above) / scale, patterns }
}

function isProof({ count }: Level, { value }: Pick<Shown, 'value'>): boolean {
  return value > count - 1 + 1e-4
}

type Found = Prices & { units: Units; value: number }

/**
 * Tries prices by RAM, by CPU and by both. Returns the best prices, which are a proof if their
 * value is high enough.
 */
function priceByScarcity(sought: TriageTerms, level: Level, untilMs: number): Found | null {
  const { classes, kinds } = sought
  const room = (size: 'ram' | 'cpu') => kinds.reduce((sum, kind) => sum + kind[size] * kind.hosts.length, 1)
  const [ram, cpu] = [room('ram'), room('cpu')]
  let best: Found | null = null
  for (const share of shares) {
    const units =
      share === 1 ? chooseUnits(sought, 'ram') : share === 0 ? chooseUnits(sought, 'cpu') : listTables(sought)[0]!
    const sizes = classes.map((each) => (share * each.ram) / ram + ((1 - share) * each.cpu) / cpu)
    const own = sizes.filter((_, index) => countOf(classes[index]!, level.priority) > 0)
    for (const one of [...new Set(own)].sort((a, b) => b - a).slice(0, maxScarceTries)) {
      if (isOver(untilMs)) return best
      const prices = pricesBySize(sought, level, sizes, one)
      const shown = evaluate(sought, level, prices, units)
      if (shown && (!best || shown.value > best.value)) best = { ...prices, units, value: shown.value }
      if (shown && isProof(level, shown)) return best
    }
  }
  return best
}

/** Prices VMs by size. A VM of the size `one` costs as much as one VM of the level weighs. */
function pricesBySize({ classes }: TriageTerms, level: Level, sizes: readonly number[], one: number): Prices {
  const heaviest = Math.ceil((scale * Math.max(...sizes)) / one)
  const weights = new Map(
    classes
      .flatMap(({ priorities }) => priorities)
      .filter((each) => each > level.priority)
      .map((each) => [each, Math.min(maxPrice, heaviest)]),
  )
  const price = classes.map((each, index) => {
    const most = each.priorities.length === 0 ? maxPrice : weightOf(each, level, weights)
    return Math.min(Math.floor((scale * sizes[index]!) / one), most)
  })
  return { price, weights }
}

/**
 * Builds the patterns of all hosts now and after the plan, so that the program has a solution from
 * the start.
 */
function placePatterns(
  instance: Instance,
  { classes, kinds }: TriageTerms,
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

/**
 * Searches prices by column generation: adds contents of hosts with which fewer VMs of this
 * priority would stay down, until prices prove that there are none. The program's prices jump
 * between rounds. Prices between them and the best so far are also tried, because they prove more.
 */
async function proveByPatterns(
  sought: TriageTerms,
  level: Level,
  known: Pattern[],
  start: Prices,
  { engine, untilMs }: { engine: SolverEngine; untilMs: number },
): Promise<Found | null> {
  let centre: Prices = start
  for (const units of listTables(sought)) {
    const patterns = known.filter((pattern) => fits(sought, pattern, units))
    let best = evaluate(sought, level, centre, units)?.value ?? Number.NEGATIVE_INFINITY
    let keep = keptOfBest
    for (let round = 0; round < maxRounds && !isOver(untilMs); round += 1) {
      const answer = await askPrices(sought, level, patterns, engine, untilMs)
      if (!answer) return null
      // Gives up this table: a combination of its patterns leaves fewer VMs down, so it cannot
      // prove the number.
      if (answer.value <= level.count - 1 + 1e-6) break
      const prices = between(sought, level, centre, answer, keep)
      const shown = evaluate(sought, level, prices, units)
      if (!shown) break
      if (isProof(level, shown)) return { ...prices, units, value: shown.value }
      const fresh = shown.patterns.filter((each) => isBetterThan(each, answer))
      if (fresh.length === 0 && keep === 0) break
      if (shown.value > best) {
        centre = prices
        best = shown.value
      }
      // Uses the program's own prices in the next round if prices in between add no pattern.
      keep = fresh.length === 0 ? 0 : keptOfBest
      for (const { kind, holds } of fresh) {
        patterns.push({ kind, holds })
        known.push({ kind, holds })
      }
    }
    if (isOver(untilMs)) return null
  }
  return null
}

/** Whether a pattern is worth more at the program's prices than a host of its kind costs. */
function isBetterThan({ kind, holds }: BestPattern, { byClass, kindPrice }: LpPrices): boolean {
  return holds.reduce((sum, count, index) => sum + count * byClass[index]!, 0) > kindPrice[kind]! + 1e-6
}

function fits({ classes, kinds }: TriageTerms, { kind, holds }: Pattern, [ramUnit, cpuUnit]: Units): boolean {
  const { ram, cpu } = kinds[kind]!
  const used = (size: 'ram' | 'cpu', unit: number) =>
    holds.reduce((sum, count, index) => sum + count * Math.floor(classes[index]![size] / unit), 0)
  return used('ram', ramUnit) <= Math.floor(ram / ramUnit) && used('cpu', cpuUnit) <= Math.floor(cpu / cpuUnit)
}

/** Lists the tables to try, those with coarse units first. */
function listTables(sought: TriageTerms): Units[] {
  const tables = [
    chooseUnits(sought, 'both', 12_000),
    chooseUnits(sought, 'ram'),
    chooseUnits(sought, 'cpu'),
    chooseUnits(sought, 'both', 80_000),
  ]
  return tables.filter((one, index) => tables.findIndex((other) => other.join() === one.join()) === index)
}
