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

/** The best starts where not all can: asked by priority, highest first, whatever the way. */

/** `isProved`: the solver says that of no priority more can start, given those before it. */
type Choice = { assignment: Assignment; started: number[]; isProved: boolean }

type MipQuestion = {
  instance: Instance
  mip: SolverEngine
  /** Ends a question that takes too long on this machine; nodes end it alike on all. */
  limitMs: number
  maxNodes: number
}

/**
 * As many of these VMs as can start, priority by priority. Null: no answer in time, or one that
 * must keep a place has none.
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

/** All that may move, on all hosts. */
export function wholeCluster(instance: Instance): Neighbourhood {
  const room = buildCapacityState(instance)
  const kept = listMovable(instance)
  for (const vm of [...kept, ...instance.evacuees]) room.place(vm, -1)
  // What has to leave its host does so or stays there: nothing is lost where it has no place.
  return { room, kept, open: instance.evacuees, hosts: listTargets(instance) }
}

/** What starts while nothing else moves. */
export function startsAlone(instance: Instance): Neighbourhood {
  const room = buildCapacityState(instance)
  for (const vm of instance.evacuees) room.place(vm, -1)
  return { room, kept: [], open: instance.evacuees, hosts: listTargets(instance) }
}

/** How large the model of all evacuees and these others is. */
export function countColumns({ targets, evacuees }: Instance, movers: readonly number[]): number {
  return (movers.length + evacuees.length) * targets
}

/** Hosts that are looked at together, and so many times. */
const nearHosts = [3, 3, 4]
const visits = 90
/** Visits without a better answer, after which there is mostly none. */
const maxVain = 25
const visitNodes = 20

/**
 * Ends with fewer VMs away from home, a few hosts at a time, for the starters: solvers place
 * starters anywhere. `keep` gets each better answer and says if there is an order: once there is
 * one, an answer without is dropped.
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
    // Hosts whose VMs are on each other first.
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
    // End places that are as good and elsewhere may lead to better ones.
    end = next
    if (more < 0) vain = 0
  }
}
