import type { SolverEngine } from '../bound/assignment.ts'
import {
  type Assignment,
  buildPlacesModel,
  type Neighbourhood,
  type PlacesModel,
  readPlaces,
  type Worth,
} from '../bound/places-model.ts'
import { type Instance, listMovable, listTargets } from '../cluster/instance.ts'
import { buildCapacityState, shuffle } from '../cluster/size-classes.ts'

/** Finds the best starts if not all VMs can start: by priority, the highest first. */

/**
 * `isProved`: the solver claims that of no priority more VMs can start, given the higher
 * priorities.
 */
type Choice = { assignment: Assignment; started: number[]; isProved: boolean }

type MipQuestion = {
  instance: Instance
  mip: SolverEngine
  /**
   * Milliseconds that end a slow solve on this machine. The limit of nodes ends it in the same way
   * on all machines.
   */
  limitMs: number
  maxNodes: number
}

/**
 * Starts as many of these VMs as possible, priority by priority. Null if there is no answer in
 * time, or a VM that must keep a place has none.
 */
export async function askWhoStarts(
  { instance, mip, limitMs, maxNodes }: MipQuestion,
  where: Neighbourhood,
): Promise<Choice | null> {
  const { priorities } = instance
  const untilMs = performance.now() + limitMs
  const atLeast: Worth[] = []
  const classes = [...new Set(where.open.flatMap((vm) => priorities[vm]!))].sort((a, b) => b - a)
  let best = null as Choice | null
  const isOpen = new Set(where.open)
  for (const priority of classes) {
    const worth = (vm: number) => (isOpen.has(vm) ? priorities[vm]!.filter((each) => each === priority).length : 0)
    const built = buildPlacesModel(instance, where, { worth, atLeast })
    if (!built) return best
    const answer = await mip.solve(built.model, untilMs - performance.now(), maxNodes)
    if (answer.status !== 'optimal' && answer.status !== 'feasible') return best && { ...best, isProved: false }
    const assignment = readPlaces(built, answer.values)
    const isProved: boolean = answer.status === 'optimal' && best?.isProved !== false
    best = { assignment, started: where.open.filter((vm) => assignment.has(vm)), isProved }
    atLeast.push({ worth, reached: sum(best.started, worth) })
  }
  return best
}

function sum(vms: readonly number[], worth: (vm: number) => number): number {
  return vms.reduce((total, vm) => total + worth(vm), 0)
}

/** Returns all movable VMs, on all hosts. */
export function wholeCluster(instance: Instance): Neighbourhood {
  const room = buildCapacityState(instance)
  const kept = listMovable(instance)
  for (const vm of [...kept, ...instance.evacuees]) room.place(vm, -1)
  // A VM that has to leave its host may also stay there, so it loses nothing without a place.
  return { room, kept, open: instance.evacuees, hosts: listTargets(instance) }
}

/** Returns the evacuees, while nothing else moves. */
export function startsAlone(instance: Instance): Neighbourhood {
  const room = buildCapacityState(instance)
  for (const vm of instance.evacuees) room.place(vm, -1)
  return { room, kept: [], open: instance.evacuees, hosts: listTargets(instance) }
}

/** Counts the columns of a model of all evacuees and these other VMs. */
export function countColumns({ targets, evacuees }: Instance, movers: readonly number[]): number {
  return (movers.length + evacuees.length) * targets
}

/** Numbers of hosts that are examined together, in turn. */
const nearHosts = [3, 3, 4]
const visits = 90
/** Number of rounds without a better answer after which there is usually none. */
const maxVain = 25
const visitNodes = 20

/**
 * Finds final hosts with fewer VMs away from home, a few hosts at a time, for the VMs that start,
 * because solvers place VMs anywhere. `keep` gets each better answer and returns whether it has an
 * order. Once an answer has an order, an answer without one is dropped.
 */
export async function bringHome(
  { instance, mip, limitMs }: Pick<MipQuestion, 'instance' | 'mip' | 'limitMs'>,
  assignment: Assignment,
  random: () => number,
  keep: (assignment: Assignment) => boolean,
): Promise<void> {
  const { home, movable, targets } = instance
  const untilMs = performance.now() + limitMs
  let end = new Map(assignment)
  let hasOrder = keep(end)
  for (
    let visit = 0, vain = 0;
    visit < visits && vain < maxVain && performance.now() < untilMs;
    visit += 1, vain += 1
  ) {
    const away = [...end].filter(([vm, host]) => movable[vm] && home[vm] !== host)
    if (away.length === 0) return
    const hosts = new Set<number>()
    const near = nearHosts[visit % nearHosts.length] as number
    // Chooses hosts that belong together, because VMs of one of them have moved to another.
    for (const [vm, host] of shuffle(away, random)) {
      if (hosts.size >= near) break
      if (hosts.size === 0 || hosts.has(host) || hosts.has(home[vm]!)) hosts.add(host).add(home[vm]!)
    }
    while (hosts.size < Math.min(near, targets)) hosts.add(Math.floor(random() * targets))
    const kept = [...end].filter(([, host]) => hosts.has(host)).map(([vm]) => vm)
    const room = buildCapacityState(instance)
    for (const vm of [...listMovable(instance), ...instance.evacuees]) room.place(vm, -1)
    for (const [vm, host] of end) if (!hosts.has(host)) room.place(vm, host)
    const built = buildPlacesModel(instance, { room, kept, open: [], hosts: [...hosts] }, { worth: null, random })
    const answer = built && (await mip.solve(built.model, Math.min(1_000, untilMs - performance.now()), visitNodes))
    if (answer?.status !== 'optimal' && answer?.status !== 'feasible') continue
    const places = readPlaces(built as PlacesModel, answer.values)
    const isAway = ([vm, host]: [number, number]) => movable[vm] && home[vm] !== host
    const more = [...places].filter(isAway).length - kept.filter((vm) => isAway([vm, end.get(vm)!])).length
    if (more > 0) continue
    const next = new Map([...end, ...places])
    const isOrdered = keep(next)
    if (hasOrder && !isOrdered) continue
    hasOrder ||= isOrdered
    // Accepts equally good final hosts, because they may lead to better ones.
    end = next
    if (more < 0) vain = 0
  }
}
