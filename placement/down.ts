import { formatList } from '../domain/format.ts'
import type { PlacementHost, PlacementProblem, PlacementVm, Plan, Unplaced } from '../domain/placement.ts'
import { barsOf, domainOf, type Rules, rulesOf } from './rules.ts'

/** VMs whose reasons are listed one by one; the rest is only named. */
const toldInFull = 50
const hostsTold = 3

/** What a plan without racks would start; null where that was not tried, or is no better. */
export type Relaxed = { starts: string[]; down: string[]; migrations: number }

/**
 * Why each VM of a plan stays down, by the rule that keeps it from each host once the steps are done, and which VMs of lower priority
 * have a place meanwhile. What is said of room is what was found: there may be more.
 */
export function explainDown(problem: PlacementProblem, plan: Plan, relaxed: Relaxed | null): Unplaced[] {
  const rules = rulesOf(problem)
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
      ...(relaxed?.starts.includes(vm.vm) ? ['it starts with use_rack_constraints: false'] : []),
    ].join('; ')
    return { ...each, reason, ...(overtakenBy.length > 0 ? { overtakenBy } : {}) }
  })
}

type World = { problem: PlacementProblem; rules: Rules; at: Map<string, string>; vms: Map<string, PlacementVm> }

function reasonOf(world: World, vm: PlacementVm): string {
  const { problem, rules } = world
  const live = problem.hosts.filter(({ name, state }) => state === 'live' && !rules.left.has(name))
  const open = live.filter((host) => barsOf(rules, vm, host).length === 0)
  const limits = limitsOf(rules, vm, live)
  const party = rules.parties.find((members) => members.includes(vm)) ?? [vm]
  const together =
    party.length > 1 ? [`together with ${formatList(party.filter((each) => each !== vm).map((each) => each.vm))}`] : []
  if (open.length === 0) return [`no live host is allowed to it`, ...limits].join('; ')
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

/** `rack spread of ha-ledger: vm-107 is in rack osl-r2`. */
function spreadOf(
  problem: PlacementProblem,
  { haGroup }: PlacementVm,
  kept: { host: PlacementHost; rival: string }[],
): string {
  const domains = Map.groupBy(kept, ({ host }) => domainOf(problem, host))
  const told = [...domains.values()].map((members) => {
    const { host, rival } = members[0] as { host: PlacementHost; rival: string }
    const isRack = problem.useRackConstraints && host.rack !== null
    return `${rival} is ${isRack ? `in rack ${host.rack}` : `on ${host.name}`}`
  })
  const more = told.length > hostsTold ? [`and ${told.length - hostsTold} more`] : []
  const kind = problem.useRackConstraints ? 'rack' : 'host'
  return `${kind} spread of ${haGroup}: ${[...told.slice(0, hostsTold), ...more].join(', ')}`
}

/** The member of its HA group that keeps a VM from a host, by what runs when the steps are done. */
function rivalOf({ problem, rules, at, vms }: World, vm: PlacementVm, host: PlacementHost): string | null {
  if (vm.haGroup === null) return null
  for (const [name, on] of at) {
    if (name === vm.vm || vms.get(name)?.haGroup !== vm.haGroup) continue
    if (domainOf(problem, rules.hostOf.get(on) as PlacementHost) === domainOf(problem, host)) return name
  }
  return null
}

/** The rules that leave it fewer than all live hosts. */
function limitsOf(rules: Rules, vm: PlacementVm, live: PlacementHost[]): string[] {
  const bars = live.flatMap((host) => barsOf(rules, vm, host).map((bar) => ({ host, bar })))
  const told = bars.map(({ host, bar }) => {
    if (bar.kind === 'region') return `region ${bar.region} only`
    if (bar.kind === 'pinned') return `pinned to ${formatList(bar.to)}`
    if (bar.kind === 'forbidden') return `never on ${host.name}`
    return bar.kind === 'beside' ? `only beside ${bar.member} (${bar.group}) on ${bar.on}` : null
  })
  return [...new Set(told.filter((each) => each !== null))].slice(0, 2 * hostsTold)
}

function hostNames(hosts: PlacementHost[]): string {
  if (hosts.length > hostsTold) return `the ${hosts.length} live hosts it may run on`
  return formatList(hosts.map(({ name }) => name))
}
