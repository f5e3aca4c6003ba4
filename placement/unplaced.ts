import { formatList } from '../domain/format.ts'
import type {
  BarredVm,
  PlacementHost,
  PlacementProblem,
  PlacementVm,
  Plan,
  PlanStep,
  Unplaced,
} from '../domain/placement.ts'
import { usableCapacity } from '../domain/usable-capacity.ts'
import { failureDomainOf, listRestrictions, type PlacementRules, type Restriction, readRules } from './rules.ts'

/** The most VMs whose reasons are listed singly. Any further VM is only named. */
const toldInFull = 50
const hostsTold = 3

/**
 * The VMs that a plan without rack constraints would start. Null if no such plan was tried, or if
 * it is no better.
 */
export type PlanWithoutRacks = { starts: string[]; down: string[]; migrations: number }

/**
 * Explains why each VM of a plan stays down, by the reasons at each host after the steps. Also
 * lists the VMs of lower priority that have a place. Free capacity is that of this plan; another
 * plan may leave more.
 */
export function explainUnplaced(problem: PlacementProblem, plan: Plan, relaxed: PlanWithoutRacks | null): Unplaced[] {
  const rules = readRules(problem)
  const at = new Map(rules.place)
  for (const { vm, to } of plan.steps) at.set(vm, to)
  const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
  const placed = plan.steps.filter(({ vm }) => rules.stranded.has(vm)).map(({ vm }) => vms.get(vm) as PlacementVm)
  const world = { problem, rules, at, vms }
  return plan.unplaced.map((each, index) => {
    const vm = vms.get(each.vm)
    if (!vm || index >= toldInFull) return each
    const overtakenBy = placed.filter(({ priority }) => priority < vm.priority).map((other) => other.vm)
    const reason = [
      reasonOf(world, vm),
      ...(overtakenBy.length > 0 ? [`VMs of lower priority get a place meanwhile: ${formatList(overtakenBy)}`] : []),
      ...(relaxed?.starts.includes(vm.vm) ? ['the VM can start with use_rack_constraints: false'] : []),
    ].join('; ')
    return { ...each, reason, ...(overtakenBy.length > 0 ? { overtakenBy } : {}) }
  })
}

type World = {
  problem: PlacementProblem
  rules: PlacementRules
  at: Map<string, string>
  vms: Map<string, PlacementVm>
}

function reasonOf(world: World, vm: PlacementVm): string {
  const { problem, rules } = world
  const live = problem.hosts.filter(({ name, state }) => state === 'live' && !rules.evacuatedHosts.has(name))
  const open = live.filter((host) => listRestrictions(rules, vm, host).length === 0)
  const limits = limitsOf(rules, vm, live)
  const party = rules.coLocated.find((members) => members.includes(vm)) ?? [vm]
  const together =
    party.length > 1 ? [`together with ${formatList(party.filter((each) => each !== vm).map((each) => each.vm))}`] : []
  if (open.length === 0) return [`the VM is allowed on no live host`, ...limits].join('; ')
  const rivals = open.map((host) => ({ host, rival: rivalOf(world, vm, host) }))
  const crowded = rivals.filter(({ rival }) => rival === null).map(({ host }) => host)
  const kept = rivals.filter(({ rival }) => rival !== null)
  const size = (of: 'ramMib' | 'cpuMc') => party.reduce((sum, each) => sum + each[of], 0)
  const room = `no room for ${size('ramMib')} MiB and ${size('cpuMc')} mCPU was found on ${hostNames(crowded)}`
  const told = [
    ...(crowded.length > 0 ? [room] : []),
    ...(kept.length > 0 ? [spreadOf(problem, vm, kept as { host: PlacementHost; rival: string }[])] : []),
  ]
  return [...told, ...together, ...limits].join('; ')
}

/** Formats `rack spread of ha-ledger: vm-107 is in rack osl-r2`. */
function spreadOf(
  problem: PlacementProblem,
  { haGroup }: PlacementVm,
  kept: { host: PlacementHost; rival: string }[],
): string {
  const domains = Map.groupBy(kept, ({ host }) => failureDomainOf(problem, host))
  const told = [...domains.values()].map((members) => {
    const { host, rival } = members[0] as { host: PlacementHost; rival: string }
    const isRack = problem.useRackConstraints && host.rack !== null
    return `${rival} is ${isRack ? `in rack ${host.rack}` : `on ${host.name}`}`
  })
  const more = told.length > hostsTold ? [`and ${told.length - hostsTold} more`] : []
  const kind = problem.useRackConstraints ? 'rack' : 'host'
  return `${kind} spread of ${haGroup}: ${[...told.slice(0, hostsTold), ...more].join(', ')}`
}

/** Finds the member of the VM's HA group that keeps the VM from a host after the steps. */
function rivalOf({ problem, rules, at, vms }: World, vm: PlacementVm, host: PlacementHost): string | null {
  if (vm.haGroup === null) return null
  for (const [name, on] of at) {
    if (name === vm.vm || vms.get(name)?.haGroup !== vm.haGroup) continue
    if (failureDomainOf(problem, rules.hostOf.get(on) as PlacementHost) === failureDomainOf(problem, host)) return name
  }
  return null
}

/** Lists the rules by which fewer hosts than all live ones may take a VM. */
function limitsOf(rules: PlacementRules, vm: PlacementVm, live: PlacementHost[]): string[] {
  const bars = live.flatMap((host) => listRestrictions(rules, vm, host).map((bar) => ({ host, bar })))
  const told = bars.map(({ host, bar }) => {
    if (bar.kind === 'region') return `region ${bar.region} only`
    if (bar.kind === 'pinned') return `pinned to ${formatList(bar.to)}`
    if (bar.kind === 'forbidden') return `never on ${host.name}`
    if (bar.kind === 'failed') return `not on ${host.name}, where the VM failed in this incident`
    return bar.kind === 'beside' ? `only beside ${bar.member} (${bar.group}) on ${bar.on}` : null
  })
  return [...new Set(told.filter((each) => each !== null))].slice(0, 2 * hostsTold)
}

function hostNames(hosts: PlacementHost[]): string {
  if (hosts.length > hostsTold) return `the ${hosts.length} live hosts on which the VM may run`
  return formatList(hosts.map(({ name }) => name))
}

/** One reason that keeps a VM from a host. `short` is in MiB or thousandths of a CPU. */
type Reason =
  | Restriction
  | { kind: 'ram' | 'cpu'; short: number }
  | { kind: 'group'; group: string; member: string; on: string }

/** A host, and why it cannot take the VM. Without `reasons` the VM could start there. */
type HostReasons = { host: string; reasons: Reason[] }

/**
 * Lists for each host why a VM without a place cannot start there after these steps, the host with
 * the fewest reasons first. VMs of its affinity group without a place count together with it.
 */
export function listReasons(problem: PlacementProblem, steps: readonly PlanStep[], name: string): HostReasons[] {
  const vm = problem.vms.find((each) => each.vm === name)
  if (!vm) return []
  const rules = readRules(problem)
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
        // Lists a reason about the host itself only once, and not for each VM.
        ...listRestrictions(rules, each, host).filter(({ kind }) => index === 0 || kind !== 'state'),
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

/** Formats a reason, such as `RAM short by 512 MiB`. */
export function describeReason(reason: Reason): string {
  switch (reason.kind) {
    case 'state':
      if (reason.state === 'left') return 'the host is being emptied'
      return reason.state === 'far'
        ? 'the host is in a region that no VM of this plan can reach'
        : `it is ${reason.state}`
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
      return 'the VM must not run there'
    case 'failed':
      return `the VM failed there in this incident (${reason.why})`
    case 'region':
      return `the disks of the VM are in region ${reason.region}`
  }
}

/** The most VMs for which a picture lists the rules host by host. */
const maxBarred = 8

/**
 * Lists why live hosts cannot take VMs that stay down, for a picture: rules first, then capacity.
 */
export function listBarred(problem: PlacementProblem, plan: Pick<Plan, 'steps' | 'unplaced'>): BarredVm[] {
  const live = new Set(problem.hosts.filter(({ state }) => state === 'live').map(({ name }) => name))
  return plan.unplaced.slice(0, maxBarred).flatMap(({ vm }) =>
    listReasons(problem, plan.steps, vm)
      .filter(({ host, reasons }) => live.has(host) && reasons.length > 0)
      .map(({ host, reasons }) => {
        const first = reasons.find(({ kind }) => kind !== 'ram' && kind !== 'cpu') ?? (reasons[0] as Reason)
        const text = `${vm} cannot go to ${host}: ${reasons.map(describeReason).join('; ')}.`
        return { vm, host, short: shortenReason(first), text }
      }),
  )
}

/** Formats a short reason, such as `region osl only`, which fits beside a box. */
function shortenReason(reason: Reason): string {
  switch (reason.kind) {
    case 'state':
      return reason.state === 'left' ? 'host is emptied' : 'out of reach'
    case 'ram':
      return `${Math.ceil(reason.short / 102.4) / 10} GiB short`
    case 'cpu':
      return `${Math.ceil(reason.short / 100) / 10} CPU short`
    case 'group':
      return `apart from ${reason.member}`
    case 'beside':
      return `only beside ${reason.member}`
    case 'pinned':
      return `only on ${reason.to[0]}${reason.to.length > 1 ? ' …' : ''}`
    case 'forbidden':
      return 'never here'
    case 'failed':
      return 'failed here before'
    case 'region':
      return `region ${reason.region} only`
  }
}

function ofGroups(
  { problem, hostOf }: PlacementRules,
  { haGroup }: PlacementVm,
  host: PlacementHost,
  running: PlacementVm[],
  at: Map<string, string>,
): Reason[] {
  if (haGroup === null) return []
  const isNear = (other: PlacementHost) => failureDomainOf(problem, other) === failureDomainOf(problem, host)
  return running
    .filter((each) => each.haGroup === haGroup && isNear(hostOf.get(at.get(each.vm) as string) as PlacementHost))
    .map(({ vm }) => ({ kind: 'group' as const, group: haGroup, member: vm, on: at.get(vm) as string }))
}

function ofRoom(problem: PlacementProblem, own: PlacementVm[], host: PlacementHost, here: PlacementVm[]): Reason[] {
  const sum = (size: 'ramMib' | 'cpuMc') => [...own, ...here].reduce((total, vm) => total + vm[size], 0)
  const limit = usableCapacity(problem, host)
  const [ram, cpu] = [sum('ramMib') - limit.ramMib, sum('cpuMc') - limit.cpuMc]
  return [
    ...(ram > 0 ? [{ kind: 'ram' as const, short: ram }] : []),
    ...(cpu > 0 ? [{ kind: 'cpu' as const, short: cpu }] : []),
  ]
}

/**
 * Sorts hosts that can never take the VM last. Of all other hosts, the one that lacks the least
 * capacity comes first.
 */
function weight({ reasons }: HostReasons): number {
  const each = reasons.map((reason) => {
    if (reason.kind === 'ram' || reason.kind === 'cpu') return reason.short
    return reason.kind === 'group' ? 1_000_000_000 : 1_000_000_000_000
  })
  return each.reduce((sum, one) => sum + one, 0)
}
