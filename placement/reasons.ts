import type { PlacementHost, PlacementProblem, PlacementVm, PlanStep } from '../domain/placement.ts'
import { type Bar, barsOf, domainOf, type Rules, rulesOf } from './rules.ts'

/** One thing that keeps a VM from a host; `short` is in MiB or thousandths of a CPU. */
export type Reason =
  | Bar
  | { kind: 'ram' | 'cpu'; short: number }
  | { kind: 'group'; group: string; member: string; on: string }

/** Empty `reasons`: it could start there. */
type HostReasons = { host: string; reasons: Reason[] }

/**
 * Why a VM that has no place cannot start on each host once these steps are done, everything that is in its way named; the host
 * with the least in its way first. VMs of its affinity group that have no place either count as one with it.
 */
export function reasonsFor(problem: PlacementProblem, steps: readonly PlanStep[], name: string): HostReasons[] {
  const vm = problem.vms.find((each) => each.vm === name)
  if (!vm) return []
  const rules = rulesOf(problem)
  const at = new Map(rules.place)
  for (const step of steps) at.set(step.vm, step.to)
  const own = problem.vms.filter(
    (each) =>
      each === vm ||
      (vm.affinityGroup !== null &&
        each.affinityGroup === vm.affinityGroup &&
        !at.has(each.vm) &&
        rules.stranded.has(each.vm)),
  )
  const running = problem.vms.filter((each) => at.has(each.vm) && !own.includes(each))
  const found = problem.hosts.map((host) => ({
    host: host.name,
    reasons: [
      ...own.flatMap((each, index) => [
        // Reasons that concern the host itself are listed once.
        ...barsOf(rules, each, host).filter(({ kind }) => index === 0 || kind !== 'state'),
        ...ofGroups(rules, each, host, running, at),
      ]),
      ...ofRoom(
        problem,
        own,
        host,
        running.filter((each) => at.get(each.vm) === host.name),
      ),
    ],
  }))
  return found.sort((a, b) => weight(a) - weight(b))
}

/** `RAM short by 512 MiB`: a reason in words. */
export function tellReason(reason: Reason): string {
  switch (reason.kind) {
    case 'state':
      if (reason.state === 'left') return 'it is to be left'
      return reason.state === 'far' ? 'it is in a region out of reach' : `it is ${reason.state}`
    case 'ram':
      return `RAM short by ${reason.short} MiB`
    case 'cpu':
      return `CPU short by ${reason.short} mCPU`
    case 'group':
      return `${reason.member} of HA group ${reason.group} is on ${reason.on}`
    case 'beside':
      return `belongs beside ${reason.member} (${reason.group}) on ${reason.on}`
    case 'pinned':
      return `pinned to ${reason.to.join(', ')}`
    case 'forbidden':
      return 'it must not run there'
    case 'region':
      return `its disks are in region ${reason.region}`
  }
}

function ofGroups(
  { problem, hostOf }: Rules,
  { haGroup }: PlacementVm,
  host: PlacementHost,
  running: PlacementVm[],
  at: Map<string, string>,
): Reason[] {
  if (haGroup === null) return []
  const isNear = (other: PlacementHost) => domainOf(problem, other) === domainOf(problem, host)
  return running
    .filter((each) => each.haGroup === haGroup && isNear(hostOf.get(at.get(each.vm) as string) as PlacementHost))
    .map(({ vm }) => ({ kind: 'group' as const, group: haGroup, member: vm, on: at.get(vm) as string }))
}

function ofRoom({ limits }: PlacementProblem, own: PlacementVm[], host: PlacementHost, here: PlacementVm[]): Reason[] {
  const sum = (size: 'ramMib' | 'cpuMc') => [...own, ...here].reduce((total, vm) => total + vm[size], 0)
  const ram = sum('ramMib') - Math.floor((host.ramMib * (100 - limits.ramReservePercent)) / 100)
  const cpu = sum('cpuMc') - Math.floor((host.cpuMc * limits.cpuOvercommitPercent) / 100)
  return [
    ...(ram > 0 ? [{ kind: 'ram' as const, short: ram }] : []),
    ...(cpu > 0 ? [{ kind: 'cpu' as const, short: cpu }] : []),
  ]
}

/** Hosts that cannot take it whatever is moved come last; of the others the one that lacks the least comes first. */
function weight({ reasons }: HostReasons): number {
  const each = reasons.map((reason) => {
    if (reason.kind === 'ram' || reason.kind === 'cpu') return reason.short
    return reason.kind === 'group' ? 1_000_000_000 : 1_000_000_000_000
  })
  return each.reduce((sum, one) => sum + one, 0)
}
