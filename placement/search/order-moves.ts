import type { Assignment } from '../bound/places-model.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState, isUp } from '../cluster/size-classes.ts'
import type { Move } from './search.ts'

/** States, and steps from them, looked at before the search for an order is given up. */
const maxStates = 20_000
const maxSteps = 400_000
/** Stops at a third host, in all: each is a migration more. */
const maxDetours = 3
/** Hosts tried for one stop. */
const stopsTried = 4

type OrderSearch = {
  instance: Instance
  capacity: CapacityState
  /** Where each VM that moves ends. */
  goal: Assignment
  done: Move[]
  /** VMs that run, and are not where they end. */
  left: Set<number>
  /** States that no order leads on from, by what is where, with so many detours left. */
  dead: Map<string, number>
  states: number
  steps: number
  deadlineMs: number
}

/**
 * An order in which these end places are reached: migrations first, then the starts, which only take room. Each VM goes straight to its own, and
 * where that cannot be, as few as possible by way of a third host. Null where there is no such order, or none was found.
 */
export function orderMoves(instance: Instance, assignment: Assignment, deadlineMs: number): Move[] | null {
  const { home } = instance
  const moving = [...assignment].filter(([vm, to]) => home[vm] !== to)
  for (let detours = 0; detours <= maxDetours; detours += 1) {
    const all: OrderSearch = {
      instance,
      capacity: buildCapacityState(instance),
      goal: new Map(moving),
      done: [],
      left: new Set(moving.flatMap(([vm]) => (home[vm]! >= 0 ? [vm] : []))),
      dead: new Map(),
      states: 0,
      steps: 0,
      deadlineMs,
    }
    if (all.left.size === 0 && detours > 0) return null
    if (!goOn(all, detours)) continue
    const starts = moving.filter(([vm]) => home[vm]! < 0)
    return starts.every(([vm, to]) => start(all, vm, to)) ? all.done : null
  }
  return null
}

function start({ capacity, done }: OrderSearch, vm: number, to: number): boolean {
  if (!capacity.fits(vm, to)) return false
  capacity.place(vm, to)
  done.push({ vm, from: -1, to })
  return true
}

function goOn(all: OrderSearch, detours: number): boolean {
  const { capacity, goal, left, dead, deadlineMs } = all
  if (left.size === 0) return true
  const key = [...goal.keys()].map((vm) => capacity.hostOf[vm]).join()
  if ((dead.get(key) ?? -1) >= detours) return false
  if (all.states > maxStates || all.steps > maxSteps || isUp(deadlineMs)) return false
  all.states += 1
  let isStuck = true
  for (const vm of [...left]) {
    all.steps += 1
    const to = goal.get(vm) as number
    if (!capacity.fits(vm, to)) continue
    isStuck = false
    if (step(all, vm, to, detours)) return true
  }
  // What can go straight needs no way round.
  if (isStuck && detours > 0 && detour(all, detours)) return true
  dead.set(key, detours)
  return false
}

/** One VM in the way stops at a third host: one that is to go on, or one that stays and comes back. */
function detour(all: OrderSearch, detours: number): boolean {
  const { instance, capacity, goal, left } = all
  const { targets, movable, home } = instance
  const blocked = new Set([...left].map((vm) => goal.get(vm) as number))
  const inTheWay = [...blocked].flatMap((host) => [...capacity.guests[host]!])
  const candidates = [
    ...inTheWay.filter((vm) => left.has(vm)),
    ...(detours > 1 ? inTheWay.filter((vm) => !left.has(vm) && movable[vm]) : []),
  ]
  for (const vm of candidates) {
    const now = capacity.hostOf[vm]!
    const stops: number[] = []
    for (let host = 0; host < targets; host += 1) if (host !== goal.get(vm) && capacity.fits(vm, host)) stops.push(host)
    stops.sort((a, b) => capacity.freeRam[b]! - capacity.freeRam[a]!)
    const isGuest = !left.has(vm)
    if (isGuest) {
      goal.set(vm, now)
      left.add(vm)
    }
    for (const host of stops.slice(0, stopsTried)) {
      all.steps += 1
      // Who comes back moves twice.
      if (step(all, vm, host, detours - (isGuest ? 2 : 1))) return true
    }
    if (isGuest) {
      left.delete(vm)
      if (home[vm] === now) goal.delete(vm)
    }
  }
  return false
}

function step(all: OrderSearch, vm: number, to: number, detours: number): boolean {
  const { capacity, goal, left, done } = all
  const from = capacity.hostOf[vm]!
  const isThere = goal.get(vm) === to
  capacity.place(vm, to)
  done.push({ vm, from, to })
  if (isThere) left.delete(vm)
  if (goOn(all, detours)) return true
  if (isThere) left.add(vm)
  done.pop()
  capacity.place(vm, from)
  return false
}
