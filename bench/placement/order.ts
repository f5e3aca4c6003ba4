import type { Plan, PlanStep } from '../../domain/placement.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import type { GoingUnit, World } from './world.ts'

/**
 * Finds an order of live migrations, one after the other, to the given end state. An order shows
 * that another solver's placement can be executed. Starts come last, because they only take room.
 * If no VM can go to its end host, one VM moves to a third host first. `migrations` counts these
 * detours, but not forced moves. Null if no order is found in time, which proves nothing.
 */
export function findOrder(world: World, place: readonly number[], seconds: number): Order | null {
  const until = performance.now() + seconds * 1_000
  const direct = world.units.reduce(
    (sum, { stranded, home, weight }, unit) => sum + (!stranded && home !== place[unit] ? weight : 0),
    0,
  )
  let best: Order | null = null
  for (let seed = 1; seed <= 20_000 && performance.now() < until; seed += 1) {
    const found = tryOrder(world, place, { next: random(seed), maxDetours: 1 + (seed % 40), until })
    if (found === null || (best !== null && found.migrations >= best.migrations)) continue
    best = found
    if (best.migrations === direct) break
  }
  return best
}

/** An order of moves. `unit` and `to` are positions in the units and hosts of a world. */
export type Order = { migrations: number; moves: { unit: number; to: number }[] }

type Attempt = { next: () => number; maxDetours: number; until: number }

function tryOrder(world: World, place: readonly number[], { next, maxDetours, until }: Attempt): Order | null {
  const { units } = world
  const now = units.map(({ home }) => home)
  const room = { ram: [...world.ram], cpu: [...world.cpu] }
  const held = new Map<string, number>(world.taken.map(([group, domain]) => [`${group} ${domain}`, 1]))
  const take = (unit: GoingUnit, host: number, sign: 1 | -1) => {
    room.ram[host]! -= sign * unit.ram
    room.cpu[host]! -= sign * unit.cpu
    for (const group of unit.groups) {
      const key = `${group} ${world.domain[host]}`
      held.set(key, (held.get(key) ?? 0) + sign)
    }
  }
  for (const unit of units) if (unit.home >= 0) take(unit, unit.home, 1)
  const fits = (index: number, host: number) => {
    const unit = units[index] as GoingUnit
    const from = now[index] as number
    const own = from >= 0 && world.domain[from] === world.domain[host] ? 1 : 0
    const isApart = unit.groups.every((group) => (held.get(`${group} ${world.domain[host]}`) ?? 0) <= own)
    return isApart && room.ram[host]! >= unit.ram && room.cpu[host]! >= unit.cpu
  }
  const moves: Order['moves'] = []
  const go = (index: number, host: number) => {
    const unit = units[index] as GoingUnit
    take(unit, host, 1)
    if (now[index]! >= 0) take(unit, now[index]!, -1)
    now[index] = host
    moves.push({ unit: index, to: host })
  }
  const pending = () => units.flatMap((unit, index) => (!unit.stranded && now[index] !== place[index] ? [index] : []))
  let detours = 0
  for (let open = pending(); open.length > 0; open = pending()) {
    if (performance.now() > until) return null
    const ready = open.filter((index) => fits(index, place[index] as number))
    if (ready.length > 0) {
      const index = ready[Math.floor(next() * ready.length)] as number
      go(index, place[index] as number)
      continue
    }
    if (detours >= maxDetours) return null
    detours += 1
    if (!detour(world, { now, open, place, fits, go, next })) return null
  }
  for (const [index, unit] of units.entries()) {
    if (!unit.stranded || place[index]! < 0) continue
    if (!fits(index, place[index]!)) return null
    go(index, place[index]!)
  }
  const others = moves.map(({ unit }) => units[unit] as GoingUnit).filter(({ stranded }) => !stranded)
  return { migrations: others.reduce((sum, { weight }) => sum + weight, 0), moves }
}

type Stuck = {
  now: number[]
  open: number[]
  place: readonly number[]
  fits(index: number, host: number): boolean
  go(index: number, host: number): void
  next: () => number
}

/** Moves one VM to a third host: a VM that waits, or a VM on a host for which another VM waits. */
function detour({ units, hosts }: World, { now, open, place, fits, go, next }: Stuck): boolean {
  const wanted = open[Math.floor(next() * open.length)] as number
  const inTheWay = units.flatMap((unit, index) => (!unit.stranded && now[index] === place[wanted] ? [index] : []))
  const tried = [wanted, ...inTheWay, ...open].sort(() => next() - 0.5)
  for (const index of tried) {
    const ways = (units[index] as GoingUnit).may.filter(
      (host) => host !== now[index] && host < hosts.length && fits(index, host),
    )
    if (ways.length === 0) continue
    go(index, ways[Math.floor(next() * ways.length)] as number)
    return true
  }
  return false
}

/**
 * Returns the order as a plan in which each step waits for the step before. A VM that is not in the
 * order stays down.
 */
export function toSequentialPlan({ hosts, units }: World, { moves }: Pick<Order, 'moves'>): Plan {
  const at = new Map<string, string>()
  const steps: PlanStep[] = []
  for (const { unit, to } of moves) {
    for (const { vm, host, running } of (units[unit] as GoingUnit).vms) {
      const step = steps.length + 1
      const action = at.has(vm) || running ? 'migrate' : 'start'
      const needs = step > 1 ? [step - 1] : []
      steps.push({ step, action, vm, from: at.get(vm) ?? host, to: hosts[to]!.name, needs, wave: step })
      at.set(vm, hosts[to]!.name)
    }
  }
  const left = units.filter(({ stranded }) => stranded).flatMap(({ vms }) => vms.filter(({ vm }) => !at.has(vm)))
  return {
    state: left.length > 0 ? 'partial' : 'planned',
    steps,
    migrations: steps.filter(({ action }) => action === 'migrate').length,
    lowerBound: 0,
    proof: { kind: 'trivial' },
    unplaced: left.map(({ vm }) => ({ vm, reason: 'it has no place in the end places of another solver' })),
    obstacle: null,
    standing: null,
    reason: null,
  }
}
