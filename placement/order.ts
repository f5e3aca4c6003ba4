import type { PlacementHost, PlacementVm, PlanStep } from '../domain/placement.ts'
import type { Assignment } from './build-model.ts'
import { isRunning, type Situation } from './situation.ts'

export type Ordered = { kind: 'order'; steps: PlanStep[] } | { kind: 'none'; moves: Assignment }

type Action = { vm: PlacementVm; from: string | null; to: string; isMigration: boolean }

/** States looked at before a search for an order is given up; then there may be one that we did not find. */
const maxStates = 100_000

/**
 * An order in which the moves of an assignment can be made, each straight to its end: a target has the room and the free
 * domain when the step begins, and a migrating VM takes room on both hosts. Starts come as early as they take no room that
 * a migration behind them needs.
 */
export function orderMoves(situation: Situation, assignment: Assignment): Ordered {
  const migrations: Action[] = []
  const starts: Action[] = []
  for (const vm of [...situation.stranded, ...situation.movable]) {
    const to = assignment.get(vm.vm)
    const runs = isRunning(situation, vm)
    if (to === undefined || (runs && to === vm.host)) continue
    const action = { vm, from: vm.host, to, isMigration: runs }
    if (runs) migrations.push(action)
    else starts.push(action)
  }
  const sequence = searchOrder(situation, migrations)
  if (!sequence) return { kind: 'none', moves: new Map(migrations.map(({ vm, to }) => [vm.vm, to])) }
  const all = insertStarts(situation, sequence, starts)
  if (!all) return { kind: 'none', moves: new Map(migrations.map(({ vm, to }) => [vm.vm, to])) }
  return {
    kind: 'order',
    steps: all.map(({ vm, from, to, isMigration }, index) => ({
      step: index + 1,
      action: isMigration ? 'migrate' : 'start',
      vm: vm.vm,
      from,
      to,
    })),
  }
}

/** Depth-first over the sets of moves made; a set that was a dead end once is one for ever. */
function searchOrder(situation: Situation, migrations: Action[]): Action[] | null {
  const room = roomOf(situation)
  const made: Action[] = []
  const done = new Set<Action>()
  const deadEnds = new Set<string>()
  const go = (): boolean => {
    if (made.length === migrations.length) return true
    const key = migrations.map((action) => (done.has(action) ? '1' : '0')).join('')
    if (deadEnds.has(key) || deadEnds.size > maxStates) return false
    for (const action of migrations) {
      if (done.has(action) || !room.takes(action)) continue
      room.make(action)
      made.push(action)
      done.add(action)
      if (go()) return true
      done.delete(action)
      made.pop()
      room.undo(action)
    }
    deadEnds.add(key)
    return false
  }
  return go() ? made : null
}

function insertStarts(situation: Situation, migrations: Action[], starts: Action[]): Action[] | null {
  const waiting = new Set(starts)
  const sequence: Action[] = []
  const room = roomOf(situation)
  const make = (action: Action) => {
    room.make(action)
    sequence.push(action)
    waiting.delete(action)
  }
  for (const [index, migration] of migrations.entries()) {
    for (const start of [...waiting]) {
      if (room.takes(start) && stillGoes(room, start, migrations.slice(index))) make(start)
    }
    make(migration)
  }
  for (const start of [...waiting]) {
    if (!room.takes(start)) return null
    make(start)
  }
  return sequence
}

/** Could all these migrations still be made in this order after that start? Leaves the room as it was. */
function stillGoes(room: Room, start: Action, rest: Action[]): boolean {
  const made: Action[] = [start]
  room.make(start)
  const goes = rest.every((action) => {
    if (!room.takes(action)) return false
    room.make(action)
    made.push(action)
    return true
  })
  for (const action of made.reverse()) room.undo(action)
  return goes
}

type Room = {
  takes(action: Action): boolean
  make(action: Action): void
  undo(action: Action): void
}

/** What is free where, step by step. */
function roomOf({ problem, targets, stranded, movable, fixed, domainOf }: Situation): Room {
  const hosts = new Map<string, PlacementHost>(targets.map((host) => [host.name, host]))
  const used = new Map<string, { ramMib: number; cpuMc: number }>()
  const members = new Map<string, number>()
  const dead = new Set(problem.hosts.filter((host) => host.state === 'dead').map((host) => host.name))

  const change = (vm: PlacementVm, host: string, sign: 1 | -1) => {
    const now = used.get(host) ?? { ramMib: 0, cpuMc: 0 }
    used.set(host, { ramMib: now.ramMib + sign * vm.ramMib, cpuMc: now.cpuMc + sign * vm.cpuMc })
    if (vm.haGroup === null) return
    const spot = `${vm.haGroup}\n${domainOf.get(host)}`
    members.set(spot, (members.get(spot) ?? 0) + sign)
  }
  for (const vm of [...stranded, ...movable, ...fixed]) {
    if (vm.running && vm.host !== null && !dead.has(vm.host)) change(vm, vm.host, 1)
  }
  return {
    takes({ vm, from, to, isMigration }) {
      const host = hosts.get(to)
      if (!host) return false
      const now = used.get(to) ?? { ramMib: 0, cpuMc: 0 }
      if (now.ramMib + vm.ramMib > host.ramMib || now.cpuMc + vm.cpuMc > host.cpuMc) return false
      if (vm.haGroup === null) return true
      const there = members.get(`${vm.haGroup}\n${domainOf.get(to)}`) ?? 0
      // Within a rack, the VM itself is the member that is there already.
      const itself = isMigration && from !== null && domainOf.get(from) === domainOf.get(to) ? 1 : 0
      return there - itself <= 0
    },
    make({ vm, from, to, isMigration }) {
      if (isMigration && from !== null) change(vm, from, -1)
      change(vm, to, 1)
    },
    undo({ vm, from, to, isMigration }) {
      change(vm, to, -1)
      if (isMigration && from !== null) change(vm, from, 1)
    },
  }
}
