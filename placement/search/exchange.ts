import { buildRoundsModel, type RoundsQuestion, readRounds } from '../bound/rounds-model.ts'
import { type Instance, listMovable, listTargets } from '../cluster/instance.ts'
import { buildCapacityState } from '../cluster/size-classes.ts'
import { incumbentMigrations, isComplete, isOptimal, recordMoves, remainingMs, type SearchState } from './exhaust.ts'
import { canBeMade } from './order-moves.ts'
import type { Move } from './search.ts'

/**
 * Finds plans with a solver, which decides moves and order together: for a small cluster, or for a
 * few hosts of a larger one whose VMs change places. Exchanges often free the capacity: VMs that
 * are large in RAM go one way, and VMs that are large in CPU the other.
 */

/**
 * The most nodes of the solver's search for one model, so that the work is the same on every
 * machine.
 */
const maxNodes = 1_000
/** Milliseconds after which the solver gives up on a model. */
const maxQuestionMs = 1_000
/** The most columns of a model, both of the complete cluster and of a neighbourhood. */
const maxColumns = 1_200
/** The most columns for which each evacuee may go to every host. */
const maxStartColumns = 300

/** VMs that may make room, and the possible hosts of each VM. */
type Scope = Pick<RoundsQuestion, 'movers' | 'hostsOf'>
/** Number of VMs down, by priority. */
type Down = ReadonlyMap<number, number>

/** Returns all movable VMs and all hosts if these are few enough. Otherwise null. */
export function wholeScope(instance: Instance, rounds: number): Scope | null {
  const movers = listMovable(instance)
  const hosts = listTargets(instance)
  return (movers.length * rounds + instance.evacuees.length) * hosts.length > maxColumns
    ? null
    : { movers, hostsOf: () => hosts }
}

/**
 * Searches among plans that move only these VMs for a better plan than the known one. If VMs stay
 * down, first decides which VMs start, in order of priority, and then searches the fewest
 * migrations for these VMs. `aim`: numbers of VMs down that no plan can improve. A plan that
 * reaches them at once ends the search.
 */
export async function askForPlan(state: SearchState, scope: Scope, rounds: number, aim: Down | null): Promise<void> {
  const { instance } = state
  if (isComplete(state)) return await askFewest(state, scope, rounds)
  const some = { ...scope, rounds, kept: [], open: instance.evacuees }
  if (aim && (await ask(state, { ...some, worth: null, atLeast: demandsOf(instance, aim) }))) return
  const down = new Map<number, number>()
  for (const priority of listPriorities(instance)) {
    const question = { ...some, worth: worthOf(instance, priority), atLeast: demandsOf(instance, down) }
    const moves = await ask(state, question)
    if (!moves) return
    down.set(priority, countDown(instance, listDown(instance, moves)).get(priority) ?? 0)
    // Stops if more VMs stay down than in the known plan, because the remaining models improve only
    // lower priorities.
    if (isMore(instance, down, countDown(instance, state.incumbent.unplaced))) return
  }
  await askFewest(state, scope, rounds)
}

/** Searches a plan with fewer migrations that starts the same number of VMs of each priority. */
async function askFewest(state: SearchState, scope: Scope, rounds: number): Promise<void> {
  const { instance, incumbent, forcedMigrations } = state
  const maxMigrations = incumbent.moves.filter(({ vm }) => instance.movable[vm]).length - 1
  if (maxMigrations < 0 || (isComplete(state) && incumbentMigrations(state) <= forcedMigrations)) return
  const who = isComplete(state)
    ? { kept: instance.evacuees, open: [], atLeast: [] }
    : { kept: [], open: instance.evacuees, atLeast: demandsOf(instance, countDown(instance, incumbent.unplaced)) }
  await ask(state, { ...scope, ...who, rounds, worth: null, maxMigrations })
}

/**
 * Solves models of a few hosts at a time, until the plan is proved best or the number of models is
 * used up.
 */
export async function exchange(state: SearchState, questions: number): Promise<void> {
  for (let asked = 0; asked < questions && !isOptimal(state) && remainingMs(state) > 300; asked += 1) {
    const rounds = asked % 3 === 2 ? 3 : 2
    const scope = chooseNeighbourhood(state, rounds, 3 + (asked % 3))
    if (isComplete(state) || !(await askWeighed(state, scope, rounds))) await askForPlan(state, scope, rounds, null)
  }
}

/** The highest weight of a VM. Above it, differences are lost in a solver's tolerances. */
const maxWeight = 20_000

/**
 * Decides all priorities in one model: a VM weighs more than all VMs of lower priority together,
 * and all migrations weigh less than the least VM. False if the weights get too large.
 */
async function askWeighed(state: SearchState, scope: Scope, rounds: number): Promise<boolean> {
  const { instance } = state
  const down = countDown(instance, state.incumbent.unplaced)
  const priorities = listPriorities(instance)
  const fixed = priorities.slice(
    0,
    priorities.findIndex((priority) => (down.get(priority) ?? 0) > 0),
  )
  const weights = new Map<number, number>()
  let weight = 1
  for (const priority of priorities.slice(fixed.length).reverse()) {
    weights.set(priority, weight)
    weight *= 1 + sum(instance.evacuees, worthOf(instance, priority))
    if (weight > maxWeight) return false
  }
  const isEvacuee = new Set(instance.evacuees)
  const worth = (vm: number) =>
    isEvacuee.has(vm) ? sum(instance.priorities[vm]!, (priority) => weights.get(priority) ?? 0) : 0
  const atLeast = demandsOf(instance, new Map(fixed.map((priority) => [priority, 0])))
  await ask(state, { ...scope, rounds, kept: [], open: instance.evacuees, worth, atLeast, migrationCost: 0.5 })
  return true
}

function sum(list: readonly number[], of: (each: number) => number): number {
  return list.reduce((total, each) => total + of(each), 0)
}

/** Counts the given VMs by priority. */
export function countDown(instance: Instance, vms: readonly number[]): Map<number, number> {
  const { priorities } = instance
  const counts = new Map(listPriorities(instance).map((priority) => [priority, 0]))
  for (const priority of vms.flatMap((vm) => priorities[vm]!)) counts.set(priority, (counts.get(priority) ?? 0) + 1)
  return counts
}

async function ask(state: SearchState, question: RoundsQuestion): Promise<Move[] | null> {
  const { instance, mip } = state
  const built = buildRoundsModel(instance, question)
  if (!built || built.columns.length === 0) return null
  const answer = await mip.solve(built.model, Math.min(maxQuestionMs, remainingMs(state) * 0.5), maxNodes)
  if (answer.status !== 'optimal' && answer.status !== 'feasible') return null
  const moves = readRounds(instance, built, answer.values)
  // Executes the moves step by step before it accepts the solution, because solvers round.
  if (!canBeMade(instance, moves)) return null
  recordMoves(state, moves, listDown(instance, moves))
  return moves
}

function listDown({ evacuees }: Instance, moves: readonly Move[]): number[] {
  const placed = new Set(moves.map(({ vm }) => vm))
  return evacuees.filter((vm) => !placed.has(vm))
}

function listPriorities({ evacuees, priorities }: Instance): number[] {
  return [...new Set(evacuees.flatMap((vm) => priorities[vm]!))].sort((a, b) => b - a)
}

function worthOf({ evacuees, priorities }: Instance, priority: number): (vm: number) => number {
  const isEvacuee = new Set(evacuees)
  return (vm) => (isEvacuee.has(vm) ? priorities[vm]!.filter((each) => each === priority).length : 0)
}

/** Returns for each priority how many VMs must start, so that no more stay down than given. */
function demandsOf(instance: Instance, down: Down): RoundsQuestion['atLeast'] {
  const all = countDown(instance, instance.evacuees)
  return [...down].map(([priority, most]) => ({
    worth: worthOf(instance, priority),
    reached: (all.get(priority) ?? 0) - most,
  }))
}

/** Whether more VMs stay down than in another plan, compared by the priorities in `down`. */
function isMore(instance: Instance, down: Down, than: Down): boolean {
  for (const priority of listPriorities(instance)) {
    const count = down.get(priority)
    if (count === undefined) return false
    const other = than.get(priority) ?? 0
    if (count !== other) return count > other
  }
  return false
}

/**
 * Chooses a few hosts, mostly by how much more RAM than CPU they have free after the known plan, or
 * the reverse. Also includes the moves of the plan.
 */
function chooseNeighbourhood({ instance, incumbent, random }: SearchState, rounds: number, size: number): Scope {
  const { targets, hostRam, hostCpu, home, movable, evacuees } = instance
  const capacity = buildCapacityState(instance)
  const planned = new Map<number, number>()
  for (const { vm, to } of incumbent.moves) {
    capacity.place(vm, to)
    planned.set(vm, to)
  }
  const ram = (host: number) => capacity.freeRam[host]! / hostRam[host]!
  const cpu = (host: number) => capacity.freeCpu[host]! / hostCpu[host]!
  const all = listTargets(instance)
  const chosen = new Set<number>()
  const take = (worth: (host: number) => number) => {
    const order = all.filter((host) => !chosen.has(host)).sort((a, b) => worth(b) - worth(a))
    const at = Math.floor(random() * random() * order.length)
    if (order[at] !== undefined) chosen.add(order[at])
  }
  const worths = [
    (host: number) => ram(host) - cpu(host),
    (host: number) => cpu(host) - ram(host),
    () => random() - 0.5,
  ]
  for (let taken = 0; taken < Math.min(size, targets); taken += 1) take(worths[taken % worths.length]!)
  const moversOf = (hosts: ReadonlySet<number>) =>
    movable.flatMap((may, vm) => (may && (hosts.has(home[vm]!) || planned.has(vm)) ? [vm] : []))
  while (chosen.size > 2 && moversOf(chosen).length * chosen.size * rounds > maxColumns)
    chosen.delete([...chosen].at(-1) as number)
  const near = [...chosen]
  const isWide = evacuees.length * targets <= maxStartColumns
  const isEvacuee = new Set(evacuees)
  const hostsOf = (vm: number) => {
    if (isWide && isEvacuee.has(vm)) return all
    const to = planned.get(vm)
    return to === undefined || chosen.has(to) ? near : [...near, to]
  }
  return { movers: moversOf(chosen), hostsOf }
}

/** Whether equally many VMs of each priority stay down. */
export function isSameDown(instance: Instance, unplaced: readonly number[], down: Down): boolean {
  const counts = countDown(instance, unplaced)
  return listPriorities(instance).every((priority) => (counts.get(priority) ?? 0) === (down.get(priority) ?? 0))
}
