import type { PlacementProblem, Plan, PlanStep, Proof } from '../domain/placement.ts'
import { certificateHolds } from './certificate.ts'
import type { Instance, Names } from './cluster/instance.ts'
import type { Incumbent } from './search/exhaust.ts'
import type { Move } from './search/search.ts'

/** What a search knows, by name and in steps that can be carried out; null when it knows no moves. Its claims are not checked here, its proof is. */
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

/** Who has no place. Why is for `down.ts` to say, of the plan that is kept. */
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

/** What shows that fewer do not do. A certificate that does not hold is no proof, and its bound is not claimed. */
function toProof(
  problem: PlacementProblem,
  { provenBy, lowerBound, certificate }: Incumbent,
): { lowerBound: number; proof: Proof } {
  if (provenBy !== 'certificate') return { lowerBound, proof: { kind: provenBy } }
  if (certificate && certificateHolds(problem, certificate))
    return { lowerBound, proof: { kind: 'certificate', ...certificate } }
  return { lowerBound: 0, proof: { kind: 'trivial' } }
}

/** A move, the moves that have to be over before it begins (by position), and the wave in which it can run at the earliest. */
export type Step = Move & { needs: number[]; wave: number }

/**
 * As few needs as keep every interleaving within the rules: a move waits for its own VM's last move, for members of its group
 * that have to leave the domain, and for those departures from its target whose room it is given. Room of departures is given
 * in their order, and a VM that comes to a host later waits for all that was given there before: so that whatever set of moves
 * has begun, the last of them to arrive has waited for the room of all.
 */
export function addNeeds(instance: Instance, moves: readonly Move[]): Step[] {
  const { domain, vmRam, vmCpu, groupsOf } = instance
  const { ram, cpu } = freeCapacity(instance)
  /** By host: departures whose room nobody has been given yet, and those whose room somebody has. */
  const departures: number[][] = instance.hostRam.map(() => [])
  const given: number[][] = instance.hostRam.map(() => [])
  const lastMoveOf = new Map<number, number>()
  /** By group and domain: the moves with which members left it. */
  const left = new Map<string, number[]>()
  /** Of each move, all that is over before it begins. */
  const before: Set<number>[] = []
  const steps: Step[] = []
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
      // What is over anyway, for whatever reason, has made its room.
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
