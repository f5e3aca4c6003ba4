import type { PlacementProblem, PlacementVm, TriageLevel } from '../domain/placement.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import { listOverfullHosts } from './certificate.ts'
import { listRestrictions, type PlacementRules, readRules, toRuleKey } from './rules.ts'

/**
 * The most table cells, and pairs of class and host, for the check of one plan, because a file must
 * not keep its reader busy.
 */
const maxLooks = 80_000_000
/** The most cells of one table, because all cells are in memory at once. */
const maxCells = 4_000_000

type Work = { left: number }

/** VMs, or sets of VMs that move as one, which do not differ in what decides a price or place. */
type TriageClass = {
  ram: number
  cpu: number
  /** The priorities of the VMs in one member. Empty if the member runs and keeps a place. */
  priorities: number[]
  /** Hosts on which a member may end. */
  hosts: ReadonlySet<string>
  group: string | null
  /** The key of the class's price. */
  key: string
  count: number
}

/**
 * Returns null if each of these levels proves that no VM of its priority is left down needlessly,
 * and otherwise the error as a sentence. Uses only whole numbers, no solver and no code of the
 * search. The rules give each VM's possible hosts.
 *
 * Every VM has a price, and a stranded VM's price is at most the weight of its priority. The VMs of
 * a host are worth no more than the best content that fits. VMs without a place are therefore worth
 * at least the price of all VMs minus the best content of every host. They are worth at most the
 * weights of the VMs that stay down. What remains without the weights of higher priorities has to
 * be VMs of this priority.
 */
export function findTriageFault(
  problem: PlacementProblem,
  unplaced: readonly string[],
  levels: readonly TriageLevel[],
): string | null {
  if (problem.intent === 'rebalance') return 'a rebalance leaves no VM down'
  const down = countDown(problem, unplaced)
  const wrong = findWrongCount(down, levels)
  if (wrong) return wrong
  // Rejects a state with a host over its capacity: it may stay so, and then its capacity does not
  // limit its VMs.
  const [full] = listOverfullHosts(problem)
  if (full !== undefined) return `${full} is already over its capacity`
  const work: Work = { left: maxLooks }
  const rules = readRules(problem)
  const classes = listClasses(rules, work)
  const room = roomBesideFixed(rules)
  for (const level of levels) {
    const shown = classes && weighDown(level, classes, { rules, room, work })
    if (shown === null) return 'the check takes too long'
    const above = down.reduce(
      (sum, [priority, count]) => (priority > level.priority ? sum + weightOf(level, priority) * count : sum),
      0,
    )
    if (shown - above <= level.scale * (level.down - 1))
      return `the certificate does not show that ${level.down} of priority ${level.priority} have to stay down`
  }
  return null
}

/** Counts the VMs of each priority that stay down, the highest priority first. */
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
    if (priority === null) return `no VM of priority ${level.priority} stays down`
    if (level.priority !== priority)
      return `priority ${priority} comes before ${level.priority}, but the certificate omits it`
    if (level.down !== count)
      return `${count} of priority ${priority} stay down, but the certificate states ${level.down}`
  }
  return null
}

function weightOf({ priority, scale, weights }: TriageLevel, of: number): number {
  if (of < priority) return 0
  if (of === priority) return scale
  return Object.hasOwn(weights, of) ? (weights[of] as number) : 0
}

/** Groups the VMs that may move or be left down into classes. Null if this takes too long. */
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
  // Adds the present host, where a VM may stay even if the rules forbid the host.
  const hosts = new Set([...open.map(({ name }) => name), ...(home === null ? [] : [home])])
  return { hosts, on: hosts.size === rules.targets.size ? null : [...hosts].sort() }
}

/**
 * Formats the key of a price, such as `4096/2000 priority 50 on host-1+host-2`. Two classes with
 * one key share a price, which proves no less.
 */
export function describeClass(of: { ram: number; cpu: number; priorities: number[]; on: string[] | null }): string {
  const priority = of.priorities.length > 0 ? ` priority ${of.priorities.join('+')}` : ''
  return `${of.ram}/${of.cpu}${priority}${of.on === null ? '' : ` on ${of.on.join('+')}`}`
}

type Room = Map<string, { ram: number; cpu: number }>

/** Returns the free capacity of each host that may take a VM, beside the VMs that never move. */
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

/**
 * Returns the worth of all VMs at the level's prices, minus the worth of the best content of each
 * host. Null if this takes too long.
 */
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

/** Returns the price of a class, at most the weight of its priorities if it may stay down. */
function priceOf(level: TriageLevel, { priorities, key }: TriageClass): number {
  const price = Object.hasOwn(level.price, key) ? (level.price[key] as number) : 0
  if (priorities.length === 0) return price
  return Math.min(
    price,
    priorities.reduce((sum, priority) => sum + weightOf(level, priority), 0),
  )
}

/**
 * Lists, by host, HA groups of which several members already run there. These members may stay, so
 * the rule "at most one" does not apply to these groups.
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

/** VMs in whole units of a table. Of items in one group, at most one is taken. */
type Item = { ram: number; cpu: number; price: number; count: number; group: string | null }

/** Sums the highest worth of these items in each room. Null if the sum takes too long. */
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
 * Lists sets of options of which at most one is taken: bundles of 1, 2, 4, … copies, whose sums
 * give every number, and the members of each group.
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

/**
 * Updates the table in place, from the largest room, because smaller rooms then still have their
 * earlier values.
 */
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
