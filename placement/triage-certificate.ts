import type { PlacementProblem, PlacementVm, TriageLevel } from '../domain/placement.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import { listOverfullHosts } from './certificate.ts'
import { listRestrictions, type PlacementRules, readRules, toRuleKey } from './rules.ts'

/**
 * Table cells and pairs of class and host that one plan's check may look at: a file must not keep
 * its reader busy.
 */
const maxLooks = 80_000_000
/** Cells of one table, which are held at once. */
const maxCells = 4_000_000

type Work = { left: number }

/** VMs alike in all that a price or place needs; or as many sets of VMs that go as one. */
type TriageClass = {
  ram: number
  cpu: number
  /** The priority of one. Empty: it runs and keeps a place, whichever that is. */
  priorities: number[]
  /** Hosts that it may end on. */
  hosts: ReadonlySet<string>
  group: string | null
  /** What its price is by. */
  key: string
  count: number
}

/**
 * Null where each of these levels shows that nobody of its priority is left down for nothing: else
 * the fault, in a sentence. Whole numbers only, no solver and no search code; the rules say where
 * each VM may go.
 *
 * Every VM has a price: a stranded one at most its priority's weight. A host's VMs are worth no
 * more than the best that fits, so VMs without a place are worth at least the price of all less
 * every host's best, and no more than the weights of those who stay down. Less what higher
 * priorities may weigh, the rest has to be VMs of this one.
 */
export function findTriageFault(
  problem: PlacementProblem,
  unplaced: readonly string[],
  levels: readonly TriageLevel[],
): string | null {
  if (problem.intent === 'rebalance') return 'a rebalance leaves nobody down'
  const down = countDown(problem, unplaced)
  const wrong = findWrongCount(down, levels)
  if (wrong) return wrong
  // Such a host may stay and takes nothing: what fits into it says nothing of its content.
  const [full] = listOverfullHosts(problem)
  if (full !== undefined) return `${full} is over its capacity already`
  const work: Work = { left: maxLooks }
  const rules = readRules(problem)
  const classes = listClasses(rules, work)
  const room = roomBesideFixed(rules)
  for (const level of levels) {
    const shown = classes && weighDown(level, classes, { rules, room, work })
    if (shown === null) return 'it takes too long to check'
    const above = down.reduce(
      (sum, [priority, count]) => (priority > level.priority ? sum + weightOf(level, priority) * count : sum),
      0,
    )
    if (shown - above <= level.scale * (level.down - 1))
      return `it does not show that ${level.down} of priority ${level.priority} have to stay down`
  }
  return null
}

/** How many of each priority stay down, the highest first. */
function countDown({ vms }: PlacementProblem, unplaced: readonly string[]): [priority: number, count: number][] {
  const isDown = new Set(unplaced)
  const byPriority = Map.groupBy(
    vms.filter(({ vm }) => isDown.has(vm)),
    ({ priority }) => priority,
  )
  return [...byPriority].map(([priority, all]): [number, number] => [priority, all.length]).sort((a, b) => b[0] - a[0])
}

function findWrongCount(down: readonly [number, number][], levels: readonly TriageLevel[]): string | null {
  for (const [index, level] of levels.entries()) {
    const [priority, count] = down[index] ?? [null, 0]
    if (priority === null) return `nobody of priority ${level.priority} stays down`
    if (level.priority !== priority) return `priority ${priority} comes before ${level.priority}, and has none`
    if (level.down !== count) return `of priority ${priority} ${count} stay down, and it says ${level.down}`
  }
  return null
}

function weightOf({ priority, scale, weights }: TriageLevel, of: number): number {
  if (of < priority) return 0
  if (of === priority) return scale
  return Object.hasOwn(weights, of) ? (weights[of] as number) : 0
}

/** What may move or be left down; null when telling it takes too long. */
function listClasses(rules: PlacementRules, work: Work): TriageClass[] | null {
  const { problem, stranded, movable, place, coLocated } = rules
  const together = new Set(coLocated.flat().map(({ vm }) => vm))
  const alone = problem.vms.filter(({ vm }) => movable.has(vm) || (stranded.has(vm) && !together.has(vm)))
  const known = new Map<string, { id: number; hosts: ReadonlySet<string>; on: string[] | null }>()
  const classes = new Map<string, TriageClass>()
  for (const vms of [...alone.map((vm) => [vm]), ...coLocated]) {
    const home = movable.has(vms[0]!.vm) ? (place.get(vms[0]!.vm) as string) : null
    const rule = JSON.stringify([home, ...vms.map((vm) => toRuleKey(rules, vm))])
    let open = known.get(rule)
    if (!open) {
      work.left -= problem.hosts.length * vms.length * 20
      if (work.left < 0) return null
      open = { id: known.size, ...listHosts(rules, vms, home) }
      known.set(rule, open)
    }
    const ram = vms.reduce((sum, { ramMib }) => sum + ramMib, 0)
    const cpu = vms.reduce((sum, { cpuMc }) => sum + cpuMc, 0)
    const priorities = home === null ? vms.map(({ priority }) => priority).sort((a, b) => b - a) : []
    const group = vms.length === 1 ? vms[0]!.haGroup : null
    const kind = JSON.stringify([open.id, ram, cpu, priorities, group])
    const one = classes.get(kind)
    if (one) {
      one.count += 1
      continue
    }
    const key = describeClass({ ram, cpu, priorities, on: open.on })
    work.left -= key.length
    if (work.left < 0) return null
    classes.set(kind, { ram, cpu, priorities, hosts: open.hosts, group, key, count: 1 })
  }
  return [...classes.values()]
}

function listHosts(
  rules: PlacementRules,
  vms: PlacementVm[],
  home: string | null,
): { hosts: ReadonlySet<string>; on: string[] | null } {
  const open = rules.problem.hosts.filter((host) => vms.every((vm) => listRestrictions(rules, vm, host).length === 0))
  // Where it runs it may stay, whatever the rules say.
  const hosts = new Set([...open.map(({ name }) => name), ...(home === null ? [] : [home])])
  return { hosts, on: hosts.size === rules.targets.size ? null : [...hosts].sort() }
}

/**
 * `4096/2000 priority 50 on host-1+host-2`: a price's key. Two classes of one name share a price,
 * which proves no less.
 */
export function describeClass(of: { ram: number; cpu: number; priorities: number[]; on: string[] | null }): string {
  const priority = of.priorities.length > 0 ? ` priority ${of.priorities.join('+')}` : ''
  return `${of.ram}/${of.cpu}${priority}${of.on === null ? '' : ` on ${of.on.join('+')}`}`
}

type Room = Map<string, { ram: number; cpu: number }>

/** For each host that may take a VM: its room beside those that stay. */
function roomBesideFixed({ problem, targets, place, movable, stranded }: PlacementRules): Room {
  const open = problem.hosts.filter(({ name }) => targets.has(name))
  const room: Room = new Map(
    open.map((host) => {
      const { ramMib, cpuMc } = usableCapacity(problem, host)
      return [host.name, { ram: ramMib, cpu: cpuMc }]
    }),
  )
  for (const { vm, ramMib, cpuMc } of problem.vms) {
    const here = movable.has(vm) || stranded.has(vm) ? undefined : room.get(place.get(vm) ?? '')
    if (!here) continue
    here.ram -= ramMib
    here.cpu -= cpuMc
  }
  return room
}

type Hosts = { rules: PlacementRules; room: Room; work: Work }

/** All VMs' worth at the level's prices less every host's best; null when that takes too long. */
function weighDown(level: TriageLevel, all: readonly TriageClass[], { rules, room, work }: Hosts): number | null {
  const { ramUnit, cpuUnit } = level
  const classes = all.flatMap((each) => {
    const price = priceOf(level, each)
    return price > 0 ? [{ ...each, price }] : []
  })
  const crowded = listCrowdedGroups(rules)
  work.left -= classes.length * room.size * 4
  if (work.left < 0) return null
  let total = classes.reduce((sum, { price, count }) => sum + price * count, 0)
  const alike = Map.groupBy(room, ([name]) =>
    JSON.stringify([
      classes.flatMap(({ hosts }, index) => (hosts.has(name) ? [index] : [])),
      [...(crowded.get(name) ?? [])].sort(),
    ]),
  )
  for (const hosts of alike.values()) {
    const name = hosts[0]![0]
    const items = classes
      .filter((each) => each.hosts.has(name))
      .map(({ ram, cpu, price, group, count }): Item => {
        const isApart = group !== null && !crowded.get(name)?.has(group)
        return {
          ram: Math.floor(ram / ramUnit),
          cpu: Math.floor(cpu / cpuUnit),
          price,
          count,
          group: isApart ? group : null,
        }
      })
    const rooms = hosts.map(([, { ram, cpu }]) => ({ ram: Math.floor(ram / ramUnit), cpu: Math.floor(cpu / cpuUnit) }))
    const best = bestOfAll(items, rooms, work)
    if (best === null) return null
    total -= best
  }
  return total
}

/** A price that is too high for who stays down counts as the highest that proves. */
function priceOf(level: TriageLevel, { priorities, key }: TriageClass): number {
  const price = Object.hasOwn(level.price, key) ? (level.price[key] as number) : 0
  if (priorities.length === 0) return price
  return Math.min(
    price,
    priorities.reduce((sum, priority) => sum + weightOf(level, priority), 0),
  )
}

/**
 * By host: HA groups with several members there already. They may stay, so "no more than one" is no
 * rule for them.
 */
function listCrowdedGroups({ problem, place }: PlacementRules): Map<string, Set<string>> {
  const seen = new Set<string>()
  const crowded = new Map<string, Set<string>>()
  for (const { vm, haGroup } of problem.vms) {
    const at = place.get(vm)
    if (at === undefined || haGroup === null) continue
    const key = JSON.stringify([at, haGroup])
    if (seen.has(key)) crowded.set(at, (crowded.get(at) ?? new Set()).add(haGroup))
    seen.add(key)
  }
  return crowded
}

/** In whole units; of a group at most one. */
type Item = { ram: number; cpu: number; price: number; count: number; group: string | null }

/** The most worth of these in each room, summed; null when that takes too long. */
function bestOfAll(items: Item[], rooms: { ram: number; cpu: number }[], work: Work): number | null {
  const [ram, cpu] = [Math.max(...rooms.map((room) => room.ram)), Math.max(...rooms.map((room) => room.cpu))]
  const width = cpu + 1
  if ((ram + 1) * width > maxCells) return null
  const best = new Float64Array((ram + 1) * width)
  for (const options of listChoices(items, ram, cpu)) {
    work.left -= best.length * options.length
    if (work.left < 0) return null
    takeOne(best, options, { ram, cpu })
  }
  return rooms.reduce((sum, room) => sum + (best[room.ram * width + room.cpu] as number), 0)
}

/**
 * Sets of which one at most is taken: bundles of 1, 2, 4, … copies, whose sums are every number,
 * and each group's members.
 */
function listChoices(items: Item[], ram: number, cpu: number): Item[][] {
  const fitting = items.filter((item) => item.ram <= ram && item.cpu <= cpu)
  const bundles = fitting.flatMap((item): Item[][] => {
    if (item.group !== null) return []
    const sets: Item[][] = []
    for (let left = item.count, size = 1; left > 0; size *= 2) {
      const count = Math.min(size, left)
      left -= count
      sets.push([{ ...item, ram: item.ram * count, cpu: item.cpu * count, price: item.price * count }])
    }
    return sets
  })
  const grouped = fitting.filter(({ group }) => group !== null)
  return [...bundles, ...Map.groupBy(grouped, ({ group }) => group).values()]
}

/** In place, the largest rooms first: what a smaller one holds is as it was before these. */
function takeOne(best: Float64Array, options: readonly Item[], { ram, cpu }: { ram: number; cpu: number }): void {
  const width = cpu + 1
  for (let r = ram; r >= 0; r -= 1) {
    for (let c = cpu; c >= 0; c -= 1) {
      const before = best[r * width + c] as number
      let most = before
      for (const item of options) {
        if (item.ram > r || item.cpu > c) continue
        const at = (r - item.ram) * width + c - item.cpu
        const worth = (at === r * width + c ? before : (best[at] as number)) + item.price
        if (worth > most) most = worth
      }
      best[r * width + c] = most
    }
  }
}
