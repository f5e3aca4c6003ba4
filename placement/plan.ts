import { digestOf } from '../domain/digest.ts'
import type { PlacementProblem, Plan, PlanProof, PlanStep } from '../domain/placement.ts'
import { certificateHolds } from './certificate.ts'
import type { Instance, Names } from './cluster/instance.ts'
import type { Incumbent } from './search/exhaust.ts'
import type { Move } from './search/search.ts'

/**
 * A search's finding, by name and in executable steps; null when it knows no moves. Its proof is
 * checked here, its claims are not.
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
    reason: report.unplaced.length > 0 ? 'no better plan was found in the time there was' : null,
  }
}

/** Moves by name, those of VMs that go as one each on its own, with the same needs. */
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

/** VMs without a place. `down.ts` says why, of the kept plan. */
export function listUnplaced(
  { placementGroups }: Names,
  unplaced: readonly number[],
  instance: Instance,
): Plan['unplaced'] {
  return unplaced.flatMap((index) => {
    const isBarred = !instance.allows[instance.rule[index]!]!.includes(true)
    const reason = isBarred ? 'no live host is allowed to it' : 'no room was found'
    return placementGroups[index]!.vms.map(({ vm, priority, haGroup }) => ({ vm, reason, priority, haGroup }))
  })
}

/** The proof that fewer do not do. A failing certificate proves nothing: no bound is claimed. */
function toProof(
  problem: PlacementProblem,
  { provenBy, lowerBound, certificate }: Incumbent,
): { lowerBound: number; proof: PlanProof } {
  if (provenBy !== 'certificate') return { lowerBound, proof: { kind: provenBy } }
  if (certificate && certificateHolds(problem, certificate))
    return { lowerBound, proof: { kind: 'certificate', ...certificate } }
  return { lowerBound: 0, proof: { kind: 'trivial' } }
}

/** A move, the moves to be over before it (by position), and its earliest wave. */
type ScheduledMove = Move & { needs: number[]; wave: number }

/**
 * The fewest needs that keep every interleaving within the rules: a move waits for its VM's last
 * move, for group members that have to leave the domain, and for the departures whose room it gets.
 * Room is given in the departures' order, and a later arrival waits for all that was given before:
 * in any set of begun moves, the last to arrive has waited for all the room.
 */
function addNeeds(instance: Instance, moves: readonly Move[]): ScheduledMove[] {
  const { domain, vmRam, vmCpu, groupsOf } = instance
  const { ram, cpu } = freeCapacity(instance)
  /** By host: departures whose room is free, and those whose room is given. */
  const departures: number[][] = instance.hostRam.map(() => [])
  const given: number[][] = instance.hostRam.map(() => [])
  const lastMoveOf = new Map<number, number>()
  /** By group and domain: the moves with which members left it. */
  const left = new Map<string, number[]>()
  /** All that is over before each move. */
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
      // A move that is over anyway, for any reason, has made its room.
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
 * SHA-256 of the ordered steps: an approval binds it. A step's other words on its VM are no part of
 * the deed.
 */
export function planDigest(steps: PlanStep[]): string {
  return digestOf(
    steps.map(({ step, action, vm, from, to, needs, wave }) => ({ step, action, vm, from, to, needs, wave })),
  )
}

/**
 * SHA-256 of a plan's facts: hosts, VMs, where they run. The inventory's order is no fact, and
 * neither is the intent, so that two proposals for one state compare.
 */
export function stateFingerprint(problem: Pick<PlacementProblem, 'hosts' | 'vms'>): string {
  // A host without a reserve keeps the fingerprint that older releases stored.
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

/** The state after a step that went well. */
export function stateAfter(state: ClusterState, { vm, to }: Pick<PlanStep, 'vm' | 'to'>): ClusterState {
  return { ...state, vms: state.vms.map((each) => (each.vm === vm ? { ...each, host: to, running: true } : each)) }
}

/** The state with one VM as another has it: our step's effect is nobody else's change. */
export function withVmFrom(state: ClusterState, vm: string, other: ClusterState): ClusterState {
  const found = other.vms.find((each) => each.vm === vm)
  return { ...state, vms: state.vms.flatMap((each) => (each.vm !== vm ? [each] : found ? [found] : [])) }
}

/**
 * How a step's things, by name, differ from this state, whatever runs where; null where they are
 * the same.
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
    return `${was.name} keeps another reserve for itself`
  return is.rack !== was.rack || is.region !== was.region ? `${was.name} stands elsewhere` : null
}

function describeVmChange(was: ClusterState['vms'][number], is: ClusterState['vms'][number]): string | null {
  if (is.ramMib !== was.ramMib || is.cpuMc !== was.cpuMc) return `${was.vm} has another size`
  return toRuleKey(is) !== toRuleKey(was) ? `${was.vm} has other rules` : null
}

/**
 * Unexpected differences, in words; empty when there are none. Facts that a plan does not rest on
 * are not compared.
 */
export function describeDrift(expected: ClusterState, current: ClusterState): string[] {
  const changes: string[] = []
  const hosts = new Map(current.hosts.map((host) => [host.name, host]))
  for (const was of expected.hosts) {
    const is = hosts.get(was.name)
    hosts.delete(was.name)
    if (!is) changes.push(`${was.name} is gone`)
    else if (is.state !== was.state) changes.push(`${was.name} is ${is.state} now, it was ${was.state}`)
    else changes.push(...[describeHostChange(was, is)].filter((each) => each !== null))
  }
  for (const name of hosts.keys()) changes.push(`${name} is new`)
  const vms = new Map(current.vms.map((vm) => [vm.vm, vm]))
  for (const was of expected.vms) {
    const is = vms.get(was.vm)
    vms.delete(was.vm)
    if (!is) changes.push(`${was.vm} is gone`)
    else if (is.host !== was.host)
      changes.push(`${was.vm} is on ${is.host ?? 'no host'} now, it was on ${was.host ?? 'none'}`)
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
