import type { Assignment } from '../bound/places-model.ts'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, type CapacityState, isUp, random, shuffle } from '../cluster/size-classes.ts'
import type { Move } from './search.ts'

/**
 * The most steps of a search through every order of moves. `maxMovesToTryAll`: the most moves for
 * such a search.
 */
const maxSteps = 20_000
const maxMovesToTryAll = 14
/** The most stops of VMs at a third host. Each stop costs a migration. */
const maxDetours = 3
/** Number of hosts that are tried for one stop of a VM. */
const stopsTried = 4
/** Number of tries that continue with any possible move. Below: the most stops in one try. */
const greedyTries = 8
const maxGreedyDetours = 10

type OrderSearch = {
  instance: Instance
  capacity: CapacityState
  /** The final host of each VM that moves. */
  goal: Assignment
  done: Move[]
  /** Running VMs that are not yet at their final host. */
  left: Set<number>
  /**
   * States from which no order leads on, by the VMs' places, each with the number of stops that
   * were left.
   */
  dead: Map<string, number>
  steps: number
  deadlineMs: number
}

/**
 * Finds an order that leads to these final hosts: migrations first, then starts, which only use
 * capacity. Each VM goes directly to its final host or, if that is impossible, by a third host.
 * With few moves, finds an order with as few stops at third hosts as possible. Null if no order was
 * found.
 */
export function orderMoves(instance: Instance, assignment: Assignment, deadlineMs: number): Move[] | null {
  const moving = [...assignment].filter(([vm, to]) => instance.home[vm] !== to)
  const migrating = moving.flatMap(([vm]) => (instance.home[vm]! >= 0 ? [vm] : []))
  const begin = (order: readonly number[]): OrderSearch => ({
    instance,
    capacity: buildCapacityState(instance),
    goal: new Map(moving),
    done: [],
    left: new Set(order),
    dead: new Map(),
    steps: 0,
    deadlineMs,
  })
  const starts = moving.filter(([vm]) => instance.home[vm]! < 0)
  const finish = (all: OrderSearch) => (starts.every(([vm, to]) => start(all, vm, to)) ? all.done : null)
  for (let detours = 0; detours <= maxDetours && migrating.length <= maxMovesToTryAll; detours += 1) {
    const all = begin(migrating)
    if (goOn(all, detours)) return finish(all)
    if (all.steps <= maxSteps && detours === maxDetours) return null
  }
  for (let turn = 0; turn < greedyTries && !isUp(deadlineMs); turn += 1) {
    const next = random(turn + 1)
    const all = begin(shuffle(migrating, next))
    if (goGreedily(all)) return finish(all)
  }
  return null
}

/** Continues with any possible move. If no move is possible, makes a stop that allows one. */
function goGreedily(all: OrderSearch): boolean {
  const { capacity, goal, left, done } = all
  const go = (vm: number, to: number) => {
    done.push({ vm, from: capacity.hostOf[vm]!, to })
    capacity.place(vm, to)
    if (goal.get(vm) === to) left.delete(vm)
  }
  for (let detours = 0; left.size > 0; ) {
    const able = [...left].filter((vm) => capacity.fits(vm, goal.get(vm) as number))
    for (const vm of able) if (capacity.fits(vm, goal.get(vm) as number)) go(vm, goal.get(vm) as number)
    if (able.length > 0) continue
    const stop = detours < maxGreedyDetours ? findStop(all) : null
    if (!stop) return false
    go(stop.vm, stop.to)
    detours += 1
  }
  return true
}

/** Finds a VM that can wait on a third host, so that a blocked VM can move to its target. */
function findStop({ instance, capacity, goal, left }: OrderSearch): { vm: number; to: number } | null {
  for (const blocked of left) {
    const host = goal.get(blocked) as number
    for (const vm of [...capacity.guests[host]!].filter((each) => left.has(each))) {
      for (let to = 0; to < instance.targets; to += 1) {
        if (!capacity.fits(vm, to)) continue
        capacity.place(vm, to)
        const isFree = capacity.fits(blocked, host)
        capacity.place(vm, host)
        if (isFree) return { vm, to }
      }
    }
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
  // Identifies a state by the place of each VM, because the VMs that return differ.
  const key = [...goal.keys()].map((vm) => `${vm}:${capacity.hostOf[vm]}`).join()
  if ((dead.get(key) ?? -1) >= detours) return false
  if (all.steps > maxSteps || isUp(deadlineMs)) return false
  let isStuck = true
  for (const vm of [...left]) {
    all.steps += 1
    const to = goal.get(vm) as number
    if (!capacity.fits(vm, to)) continue
    isStuck = false
    if (step(all, vm, to, detours)) return true
  }
  // Makes a stop only if no VM can go directly to its final host.
  if (isStuck && detours > 0 && detour(all, detours)) return true
  dead.set(key, detours)
  return false
}

/**
 * Moves one VM that is in the way to a third host. The VM continues from there later, or returns.
 */
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
      // Counts two stops for a VM that returns, because it moves twice.
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

/** Whether the moves can be made one after the other, in this order. */
export function canBeMade(instance: Instance, moves: readonly Move[]): boolean {
  const { hostOf, fits, place } = buildCapacityState(instance)
  for (const { vm, from, to } of moves) {
    if (hostOf[vm] !== from || !fits(vm, to)) return false
    place(vm, to)
  }
  return true
}
