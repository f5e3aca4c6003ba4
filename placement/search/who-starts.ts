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
   * Milliseconds after which a slow solve ends on this machine. `maxNodes` ends a solve at an equal
   * point on all machines.
   */
  limitMs: number
  maxNodes: number
}

/**
 * Starts as many of these VMs as possible, priority by priority. Null without an answer in time, or
 * if a VM that must keep a place has none.
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

/** Returns a neighbourhood of all evacuees and movable VMs, on all hosts. */
export function wholeCluster(instance: Instance): Neighbourhood {
  const room = buildCapacityState(instance)
  const kept = listMovable(instance)
  for (const vm of [...kept, ...instance.evacuees]) room.place(vm, -1)
  // Treats all evacuees as open, because one without a place may at worst stay on its host.
  return { room, kept, open: instance.evacuees, hosts: listTargets(instance) }
}

/** Returns a neighbourhood of only the evacuees, while no other VM moves. */
export function startsAlone(instance: Instance): Neighbourhood {
  const room = buildCapacityState(instance)
  for (const vm of instance.evacuees) room.place(vm, -1)
  return { room, kept: [], open: instance.evacuees, hosts: listTargets(instance) }
}

/** Counts the columns of a model of all evacuees and the given movers. */
export function countColumns({ targets, evacuees }: Instance, movers: readonly number[]): number {
  return (movers.length + evacuees.length) * targets
}

/** Numbers of hosts that are examined together, used in turn. */
const nearHosts = [3, 3, 4]
const visits = 90
/** Number of rounds without a better answer after which usually no better one follows. */
const maxVain = 25
const visitNodes = 20

/**
 * Finds final hosts with fewer VMs away from home, a few hosts at a time, because solvers place VMs
 * anywhere. `keep` gets each better answer, and returns whether it has an order. Once an answer has
 * an order, an answer without an order is dropped.
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
    // Chooses hosts that belong together: VMs have moved from one of them to another.
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
    // Accepts equally good final hosts too, because they may lead to better final hosts.
    end = next
    if (more < 0) vain = 0
  }
}
