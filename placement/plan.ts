import { digestOf } from '../domain/digest.ts'
import type { PlacementProblem, Plan, PlanProof, PlanStep } from '../domain/placement.ts'
import { certificateHolds } from './certificate.ts'
import type { Instance, Names } from './cluster/instance.ts'
import type { Incumbent } from './search/exhaust.ts'
import type { Move } from './search/search.ts'

/**
 * Converts the result of a search to names and executable steps. Null for a result without moves.
 * Checks the result's proof here, but no other claim of the result.
 */
export function toPlan(problem: PlacementProblem, instance: Instance, names: Names, report: Incumbent): Plan | null {
  if (report.moves.length === 0) return null
  const steps = toPlanSteps(instance, names, report)
  const unplaced = problem.intent === 'rebalance' ? [] : listUnplaced(names, report.unplaced, instance)
  return {
    state: report.unplaced.length > 0 ? 'partial' : 'planned',
    steps,
    migrations: steps.filter(({ action }) => action === 'migrate').length,
    ...toProof(problem, report),
    unplaced,
    obstacle: null,
    standing: null,
    reason: report.unplaced.length > 0 ? 'no better plan was found in time' : null,
  }
}

/**
 * Converts moves to steps with names. VMs that move as one become separate steps with equal needs.
 */
function toPlanSteps(instance: Instance, { hosts, placementGroups }: Names, { moves }: Incumbent): PlanStep[] {
  const numbered: number[][] = []
  let count = 0
  const steps = addNeeds(instance, moves)
  for (const { vm } of steps) numbered.push(placementGroups[vm]!.vms.map(() => ++count))
  return steps.flatMap(({ vm, from, to, needs, wave }, index) =>
    placementGroups[vm]!.vms.map(
      (each, part): PlanStep => ({
        step: numbered[index]![part]!,
        action: from >= 0 ? 'migrate' : 'start',
        vm: each.vm,
        from: from >= 0 ? hosts[from]! : each.host,
        to: hosts[to]!,
        needs: needs.flatMap((need) => numbered[need]!),
        wave,
        priority: each.priority,
        haGroup: each.haGroup,
      }),
    ),
  )
}

/** Lists the VMs without a place. `unplaced.ts` explains them for the final plan. */
export function listUnplaced(
  { placementGroups }: Names,
  unplaced: readonly number[],
  instance: Instance,
): Plan['unplaced'] {
  return unplaced.flatMap((index) => {
    const isBarred = !instance.allows[instance.rule[index]!]!.includes(true)
    const reason = isBarred ? 'the VM is allowed on no live host' : 'no room was found'
    return placementGroups[index]!.vms.map(({ vm, priority, haGroup }) => ({ vm, reason, priority, haGroup }))
  })
}

/**
 * Returns the proof that fewer migrations are not enough. Claims nothing if the certificate fails.
 */
function toProof(
  problem: PlacementProblem,
  { provenBy, lowerBound, certificate }: Incumbent,
): { lowerBound: number; proof: PlanProof } {
  if (provenBy !== 'certificate') return { lowerBound, proof: { kind: provenBy } }
  if (certificate && certificateHolds(problem, certificate))
    return { lowerBound, proof: { kind: 'certificate', ...certificate } }
  return { lowerBound: 0, proof: { kind: 'trivial' } }
}

/** A move, with the positions of all moves that must end before it, and with its earliest wave. */
type ScheduledMove = Move & { needs: number[]; wave: number }

/**
 * Adds the fewest needs with which the rules hold for every order of concurrent moves. A move waits
 * for the last move of its VM, for group members that have to leave the domain, and for the
 * departures whose capacity it uses. Freed capacity is given away in the order of departures. A
 * later arrival waits for every departure whose capacity was given before, so that in any set of
 * begun moves, the last one to arrive has waited for all the capacity.
 */
function addNeeds(instance: Instance, moves: readonly Move[]): ScheduledMove[] {
  const { domain, vmRam, vmCpu, groupsOf } = instance
  const { ram, cpu } = freeCapacity(instance)
  /** Departures from each host whose capacity is free, and whose capacity was given to a move. */
  const departures: number[][] = instance.hostRam.map(() => [])
  const given: number[][] = instance.hostRam.map(() => [])
  const lastMoveOf = new Map<number, number>()
  /** The moves with which members of a group left a domain, by group and domain. */
  const left = new Map<string, number[]>()
  /** For each move, all moves that end before it. */
  const before: Set<number>[] = []
  const steps: ScheduledMove[] = []
  for (const [index, { vm, from, to }] of moves.entries()) {
    const needs = new Set<number>()
    const over = new Set<number>()
    const waitFor = (need: number) => {
      needs.add(need)
      over.add(need)
      for (const each of before[need]!) over.add(each)
    }
    const give = (departure: number) => {
      departures[to] = departures[to]!.filter((each) => each !== departure)
      given[to]!.push(departure)
      ram[to]! += vmRam[moves[departure]!.vm]!
      cpu[to]! += vmCpu[moves[departure]!.vm]!
    }
    const last = lastMoveOf.get(vm)
    if (last !== undefined) waitFor(last)
    for (const group of groupsOf[vm]!) for (const leaving of left.get(`${group} ${domain[to]}`) ?? []) waitFor(leaving)
    for (const departure of given[to]!) waitFor(departure)
    for (;;) {
      // Takes the capacity of departures that end before this move anyway.
      for (const departure of departures[to]!.filter((each) => over.has(each))) give(departure)
      if (ram[to]! >= vmRam[vm]! && cpu[to]! >= vmCpu[vm]!) break
      const next = departures[to]![0]
      if (next === undefined) throw new Error(`move ${index} has no room on its host`)
      waitFor(next)
    }
    ram[to]! -= vmRam[vm]!
    cpu[to]! -= vmCpu[vm]!
    if (from >= 0) {
      departures[from]!.push(index)
      if (domain[from] !== domain[to]) {
        for (const group of groupsOf[vm]!) {
          const key = `${group} ${domain[from]}`
          left.set(key, [...(left.get(key) ?? []), index])
        }
      }
    }
    lastMoveOf.set(vm, index)
    before.push(over)
    const wave = 1 + Math.max(0, ...[...needs].map((need) => steps[need]!.wave))
    steps.push({ vm, from, to, needs: [...needs].sort((a, b) => a - b), wave })
  }
  return steps
}

function freeCapacity({ hostRam, hostCpu, vmRam, vmCpu, home }: Instance): { ram: number[]; cpu: number[] } {
  const [ram, cpu] = [[...hostRam], [...hostCpu]]
  for (const [vm, host] of home.entries()) {
    if (host < 0) continue
    ram[host]! -= vmRam[vm]!
    cpu[host]! -= vmCpu[vm]!
  }
  return { ram, cpu }
}

/**
 * Computes the SHA-256 of a plan's ordered steps, to which an approval refers. Priority and other
 * information about a step's VM is not part of the action.
 */
export function planDigest(steps: PlanStep[]): string {
  return digestOf(
    steps.map(({ step, action, vm, from, to, needs, wave }) => ({ step, action, vm, from, to, needs, wave })),
  )
}

/**
 * Computes the SHA-256 of the facts behind a plan: hosts, VMs, and the VMs' places. Leaves out the
 * order of the inventory and the intent, so that two proposals for one state can be compared.
 */
export function stateFingerprint(problem: Pick<PlacementProblem, 'hosts' | 'vms'>): string {
  // Leaves out the reserve of a host that has none, to keep the fingerprints that older releases
  // stored.
  const hosts = problem.hosts.map(({ name, ramMib, cpuMc, ramReserveMib, cpuReserveMc, rack, region, state }) => ({
    name,
    ramMib,
    cpuMc,
    rack,
    region,
    state,
    ...(ramReserveMib !== undefined && { ramReserveMib }),
    ...(cpuReserveMc !== undefined && { cpuReserveMc }),
  }))
  const vms = problem.vms.map(
    ({ vm, ramMib, cpuMc, haGroup, host, running, priority, pinnedTo, forbiddenHosts, affinityGroup }) => ({
      vm,
      ramMib,
      cpuMc,
      haGroup,
      host,
      running,
      priority,
      affinityGroup,
      pinnedTo: [...pinnedTo].sort(),
      forbiddenHosts: [...forbiddenHosts].sort(),
    }),
  )
  return digestOf({
    hosts: hosts.sort((a, b) => compare(a.name, b.name)),
    vms: vms.sort((a, b) => compare(a.vm, b.vm)),
  })
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export type ClusterState = Pick<PlacementProblem, 'hosts' | 'vms'>

const maxChanges = 5

/** Returns the state of the cluster after a successful step. */
export function stateAfter(state: ClusterState, { vm, to }: Pick<PlanStep, 'vm' | 'to'>): ClusterState {
  return { ...state, vms: state.vms.map((each) => (each.vm === vm ? { ...each, host: to, running: true } : each)) }
}

/**
 * Returns a state in which one VM is as in another state. Used for effects of this plan, which are
 * not foreign changes.
 */
export function withVmFrom(state: ClusterState, vm: string, other: ClusterState): ClusterState {
  const found = other.vms.find((each) => each.vm === vm)
  return { ...state, vms: state.vms.flatMap((each) => (each.vm !== vm ? [each] : found ? [found] : [])) }
}

/**
 * Describes how the step's VM and target differ from the approved state, regardless of which VMs
 * run where. Null if neither differs.
 */
export function describeReplacement(
  approved: ClusterState,
  current: ClusterState,
  { vm, to }: Pick<PlanStep, 'vm' | 'to'>,
): string | null {
  const [wasVm, isVm] = [approved, current].map(({ vms }) => vms.find((each) => each.vm === vm))
  const [wasHost, isHost] = [approved, current].map(({ hosts }) => hosts.find((each) => each.name === to))
  const vmChange = wasVm && isVm ? describeVmChange(wasVm, isVm) : isVm ? `${vm} is new` : `${vm} is gone`
  return (
    vmChange ?? (wasHost && isHost ? describeHostChange(wasHost, isHost) : isHost ? `${to} is new` : `${to} is gone`)
  )
}

type Host = ClusterState['hosts'][number]

function describeHostChange(was: Host, is: Host): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.name} has another size`
  if (is.ramReserveMib !== was.ramReserveMib || is.cpuReserveMc !== was.cpuReserveMc)
    return `${was.name} has another reserve`
  return is.rack !== was.rack || is.region !== was.region ? `${was.name} stands elsewhere` : null
}

function describeVmChange(was: ClusterState['vms'][number], is: ClusterState['vms'][number]): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.vm} has another size`
  return toRuleKey(is) !== toRuleKey(was) ? `${was.vm} has other rules` : null
}

/**
 * Describes unexpected differences between two states. Empty without differences. Does not compare
 * facts on which no plan depends.
 */
export function describeDrift(expected: ClusterState, current: ClusterState): string[] {
  const changes: string[] = []
  const hosts = new Map(current.hosts.map((host) => [host.name, host]))
  for (const was of expected.hosts) {
    const is = hosts.get(was.name)
    hosts.delete(was.name)
    if (!is) changes.push(`${was.name} is gone`)
    else if (is.state !== was.state) changes.push(`${was.name} is now ${is.state}, but was ${was.state}`)
    else changes.push(...[describeHostChange(was, is)].filter((each) => each !== null))
  }
  for (const name of hosts.keys()) changes.push(`${name} is new`)
  const vms = new Map(current.vms.map((vm) => [vm.vm, vm]))
  for (const was of expected.vms) {
    const is = vms.get(was.vm)
    vms.delete(was.vm)
    if (!is) changes.push(`${was.vm} is gone`)
    else if (is.host !== was.host)
      changes.push(`${was.vm} is now on ${is.host ?? 'no host'}, but was on ${was.host ?? 'none'}`)
    else if (is.running !== was.running)
      changes.push(`${was.vm} was ${is.running ? 'started' : 'stopped'} by somebody else`)
    else changes.push(...[describeVmChange(was, is)].filter((each) => each !== null))
  }
  for (const name of vms.keys()) changes.push(`${name} is new`)
  return changes.length > maxChanges
    ? [...changes.slice(0, maxChanges), `and ${changes.length - maxChanges} more`]
    : changes
}

function toRuleKey({ haGroup, affinityGroup, pinnedTo, forbiddenHosts }: ClusterState['vms'][number]): string {
  return JSON.stringify([haGroup, affinityGroup, [...pinnedTo].sort(), [...forbiddenHosts].sort()])
}
