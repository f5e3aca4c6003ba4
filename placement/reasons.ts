import type { PlacementHost, PlacementProblem, PlacementVm, PlanStep } from '../domain/placement.ts'

/** One thing that keeps a VM from a host; `short` is in MiB or thousandths of a CPU. */
export type Reason =
  | { kind: 'state'; state: 'dead' | 'draining' | 'left' }
  | { kind: 'ram' | 'cpu'; short: number }
  | { kind: 'group'; group: string; member: string; on: string }
  | { kind: 'beside'; group: string; member: string; on: string }
  | { kind: 'pinned'; to: string[] }
  | { kind: 'forbidden' }
  | { kind: 'region'; region: string }

/** Empty `reasons`: it could start there. */
type HostReasons = { host: string; reasons: Reason[] }

/**
 * Why a VM that has no place cannot start on each host once these steps are done, everything that is in its way named; the host
 * with the least in its way first. VMs of its affinity group that have no place either count as one with it.
 */
export function reasonsFor(problem: PlacementProblem, steps: readonly PlanStep[], name: string): HostReasons[] {
  const vm = problem.vms.find((each) => each.vm === name)
  if (!vm) return []
  const hostOf = new Map(problem.hosts.map((host) => [host.name, host]))
  const at = placesAfter(problem, hostOf, steps)
  const own = problem.vms.filter(
    (each) =>
      each === vm ||
      (vm.affinityGroup !== null && each.affinityGroup === vm.affinityGroup && isWithout(problem, at, each)),
  )
  const running = problem.vms.filter((each) => at.has(each.vm) && !own.includes(each))
  const found = problem.hosts.map((host) => ({
    host: host.name,
    reasons: [
      ...ofState(problem, host),
      ...own.flatMap((each) => [...ofRules(each, host, hostOf), ...ofGroups(problem, each, host, running, at, hostOf)]),
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
      return reason.state === 'left' ? 'it is to be left' : `it is ${reason.state}`
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

function placesAfter(
  { vms }: PlacementProblem,
  hostOf: Map<string, PlacementHost>,
  steps: readonly PlanStep[],
): Map<string, string> {
  const at = new Map<string, string>()
  for (const { vm, host, running } of vms) {
    if (running && host !== null && hostOf.get(host)?.state !== 'dead') at.set(vm, host)
  }
  for (const { vm, to } of steps) at.set(vm, to)
  return at
}

/** Down with a host that the problem is about. */
function isWithout({ hostIds, vmIds }: PlacementProblem, at: Map<string, string>, { vm, host }: PlacementVm): boolean {
  if (at.has(vm) || (vmIds !== null && !vmIds.includes(vm))) return false
  return host === null ? vmIds !== null : hostIds.includes(host)
}

function ofState({ intent, hostIds }: PlacementProblem, { name, state }: PlacementHost): Reason[] {
  if (state !== 'live') return [{ kind: 'state', state }]
  return intent !== 'rebalance' && hostIds.includes(name) ? [{ kind: 'state', state: 'left' }] : []
}

function ofRules(vm: PlacementVm, host: PlacementHost, hostOf: Map<string, PlacementHost>): Reason[] {
  const region = vm.host === null ? null : (hostOf.get(vm.host)?.region ?? null)
  const isAway = region !== null && host.region !== null && region !== host.region
  return [
    ...(isAway ? [{ kind: 'region' as const, region }] : []),
    ...(vm.pinnedTo.length > 0 && !vm.pinnedTo.includes(host.name)
      ? [{ kind: 'pinned' as const, to: vm.pinnedTo }]
      : []),
    ...(vm.forbiddenHosts.includes(host.name) ? [{ kind: 'forbidden' as const }] : []),
  ]
}

function ofGroups(
  { useRackConstraints }: PlacementProblem,
  { haGroup, affinityGroup }: PlacementVm,
  host: PlacementHost,
  running: PlacementVm[],
  at: Map<string, string>,
  hostOf: Map<string, PlacementHost>,
): Reason[] {
  const isNear = (other: PlacementHost) =>
    other === host ||
    (useRackConstraints && other.rack !== null && other.rack === host.rack && other.region === host.region)
  const rivals = running.filter((each) => haGroup !== null && each.haGroup === haGroup)
  const mates = running.filter((each) => affinityGroup !== null && each.affinityGroup === affinityGroup)
  const isBeside = mates.length === 0 || mates.some(({ vm }) => at.get(vm) === host.name)
  const on = (vm: string) => at.get(vm) as string
  return [
    ...rivals
      .filter(({ vm }) => isNear(hostOf.get(on(vm)) as PlacementHost))
      .map(({ vm }) => ({ kind: 'group' as const, group: haGroup as string, member: vm, on: on(vm) })),
    ...mates
      .slice(0, isBeside ? 0 : 1)
      .map(({ vm }) => ({ kind: 'beside' as const, group: affinityGroup as string, member: vm, on: on(vm) })),
  ]
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
