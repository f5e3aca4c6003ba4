import type { PlacementProblem, Plan, PlanStep } from '../../domain/placement.ts'
import { mayRunOn, nameDomain, readWorld, roomOf } from './world.ts'

/**
 * Describes the rules that a plan breaks in any order that the dependencies of its steps allow.
 * Uses the bench's own reading of the rules (`world.ts`). The check is exact: it computes the
 * greatest load of each host at one time, over all sets of begun and ended steps.
 */
export function findBreaks(problem: PlacementProblem, plan: Plan): string[] {
  const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
  const hosts = new Map(problem.hosts.map((host) => [host.name, host]))
  const runs = (name: string) => {
    const vm = vms.get(name)
    return vm?.running && vm.host !== null && hosts.get(vm.host)?.state !== 'dead' ? vm.host : null
  }
  const breaks: string[] = []
  const at = new Map(problem.vms.map(({ vm }) => [vm, runs(vm)]))
  for (const { step, action, vm: name, from, to } of plan.steps) {
    const [vm, target] = [vms.get(name), hosts.get(to)]
    if (!vm || !target) return [...breaks, `step ${step} is about what is not there`]
    const home = vm.host === null ? undefined : hosts.get(vm.host)
    if (target.state !== 'live' || problem.hostIds.includes(to))
      breaks.push(`step ${step} goes to ${to}, which takes none`)
    if (!mayRunOn(vm, home, target)) breaks.push(`step ${step}: ${name} may not run on ${to}`)
    if (action === 'migrate' && (at.get(name) !== from || from === null))
      breaks.push(`step ${step}: ${name} is not on ${from}`)
    if (action === 'start' && at.get(name) !== null) breaks.push(`step ${step}: ${name} runs already`)
    at.set(name, to)
  }
  const before = listAncestors(plan.steps)
  for (const host of problem.hosts.filter(({ state }) => state === 'live')) {
    const room = roomOf(problem, host)
    for (const [size, most] of [
      ['ramMib', room.ram],
      ['cpuMc', room.cpu],
    ] as const) {
      const first = problem.vms.reduce((sum, vm) => sum + (runs(vm.vm) === host.name ? vm[size] : 0), 0)
      const gain = (step: PlanStep) => (step.to === host.name ? vms.get(step.vm)![size] : 0)
      const loss = (step: PlanStep) =>
        step.action === 'migrate' && step.from === host.name ? vms.get(step.vm)![size] : 0
      const worst = first + mostGained(plan.steps, gain, loss)
      if (worst > Math.max(most, first)) breaks.push(`${host.name} may hold ${worst} of ${most} ${size}`)
    }
  }
  breaks.push(...findMeetings(problem, plan, before, runs), ...findLeftOut(problem, plan, at))
  return breaks
}

/** Lists, for each step, the steps that end before it begins. */
function listAncestors(steps: readonly PlanStep[]): Map<number, Set<number>> {
  const all = new Map<number, Set<number>>()
  for (const { step, needs } of steps) all.set(step, new Set(needs.flatMap((need) => [need, ...(all.get(need) ?? [])])))
  return all
}

/**
 * Computes the most RAM or CPU that a host can gain at one time. Each step may have begun (the host
 * gains) and ended (the host loses). A step ends only after it began, and begins only after its
 * needs ended. This closure of greatest weight is computed as a cut: all gains less the greatest
 * flow from gains to forced losses.
 */
function mostGained(
  steps: readonly PlanStep[],
  gain: (step: PlanStep) => number,
  loss: (step: PlanStep) => number,
): number {
  const number = new Map(steps.map(({ step }, index) => [step, index]))
  const [source, sink] = [2 * steps.length, 2 * steps.length + 1]
  const edges: Map<number, number>[] = Array.from({ length: sink + 1 }, () => new Map())
  const add = (from: number, to: number, room: number) => edges[from]!.set(to, (edges[from]!.get(to) ?? 0) + room)
  let total = 0
  for (const [index, step] of steps.entries()) {
    add(source, index, gain(step))
    add(steps.length + index, sink, loss(step))
    add(steps.length + index, index, Number.POSITIVE_INFINITY)
    for (const need of step.needs) add(index, steps.length + number.get(need)!, Number.POSITIVE_INFINITY)
    total += gain(step)
  }
  for (;;) {
    const path = findPath(edges, source, sink)
    if (!path) return total
    const room = Math.min(...path.slice(1).map((to, index) => edges[path[index]!]!.get(to)!))
    for (const [index, to] of path.slice(1).entries()) {
      add(path[index]!, to, -room)
      add(to, path[index]!, room)
    }
    total -= room
  }
}

function findPath(edges: Map<number, number>[], source: number, sink: number): number[] | null {
  const cameFrom = new Map([[source, source]])
  const open = [source]
  for (const at of open) {
    for (const [to, room] of edges[at]!) {
      if (room <= 0 || cameFrom.has(to)) continue
      cameFrom.set(to, at)
      open.push(to)
      if (to !== sink) continue
      const path = [sink]
      while (path[0] !== source) path.unshift(cameFrom.get(path[0]!)!)
      return path
    }
  }
  return null
}

/** Finds two VMs of a group that may be in one failure domain at the same time. */
function findMeetings(
  problem: PlacementProblem,
  { steps }: Plan,
  before: Map<number, Set<number>>,
  runs: (vm: string) => string | null,
): string[] {
  const hosts = new Map(problem.hosts.map((host) => [host.name, host]))
  const stays = (vm: string) => {
    const own = steps.filter((step) => step.vm === vm)
    const places = [
      { host: runs(vm), begun: null as number | null },
      ...own.map(({ to, step }) => ({ host: to as string | null, begun: step as number | null })),
    ]
    return places.flatMap(({ host, begun }, index) =>
      host === null ? [] : [{ domain: nameDomain(problem, hosts.get(host)!), begun, ended: own[index]?.step ?? null }],
    )
  }
  const groups = Map.groupBy(
    problem.vms.filter(({ haGroup }) => haGroup !== null),
    ({ haGroup }) => haGroup,
  )
  return [...groups].flatMap(([group, members]) =>
    members.flatMap(({ vm: one }, index) =>
      members.slice(index + 1).flatMap(({ vm: other }) =>
        stays(one).some((a) =>
          stays(other).some((b) => {
            const isOver = (ended: number | null, begun: number | null) =>
              ended !== null && begun !== null && before.get(begun)!.has(ended)
            const isOld = a.begun === null && b.begun === null
            return a.domain === b.domain && !isOld && !isOver(a.ended, b.begun) && !isOver(b.ended, a.begun)
          }),
        )
          ? [`${one} and ${other} of group ${group} may meet`]
          : [],
      ),
    ),
  )
}

/**
 * Finds VMs that have no place although the plan does not list them as unplaced. Also finds VMs
 * that should move as one and do not.
 */
function findLeftOut(problem: PlacementProblem, plan: Plan, at: Map<string, string | null>): string[] {
  if (plan.state !== 'planned' && plan.state !== 'partial') return []
  const down = new Set(plan.unplaced.map(({ vm }) => vm))
  return readWorld(problem).units.flatMap(({ vms, stranded }) => {
    if (!stranded) return []
    const ends = new Set(vms.map(({ vm }) => (down.has(vm) ? 'down' : at.get(vm))))
    const lost = vms.filter(({ vm }) => !down.has(vm) && (at.get(vm) === null || problem.hostIds.includes(at.get(vm)!)))
    return [
      ...lost.map(({ vm }) => `${vm} has no place`),
      ...(ends.size > 1 ? [`${vms[0]?.vm} and others are apart`] : []),
    ]
  })
}
