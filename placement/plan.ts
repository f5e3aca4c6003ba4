import type { PlacementProblem, Plan, PlanStep, Proof } from '../domain/placement.ts'
import { holds } from './certificate.ts'
import type { Instance, Names } from './cluster/instance.ts'
import type { Known } from './cluster/known.ts'
import { withNeeds } from './steps.ts'

/** What a search knows, by name and in steps that can be carried out; null when it knows no moves. Its claims are not checked here, its proof is. */
export function planOf(problem: PlacementProblem, instance: Instance, names: Names, report: Known): Plan | null {
  if (report.moves.length === 0) return null
  const steps = stepsOf(instance, names, report)
  const unplaced = problem.intent === 'rebalance' ? [] : unplacedOf(names, report.left, instance)
  return {
    state: report.left.length > 0 ? 'partial' : 'planned',
    steps,
    migrations: steps.filter(({ action }) => action === 'migrate').length,
    ...provedBy(problem, report),
    unplaced,
    ...{ obstacle: null, standing: null },
    reason: report.left.length > 0 ? 'no better plan was found in the time there was' : null,
  }
}

/** Moves by name, those of VMs that go as one each on its own, with the same needs. */
function stepsOf(instance: Instance, { hosts, units }: Names, { moves }: Known): PlanStep[] {
  const numbered: number[][] = []
  let count = 0
  const steps = withNeeds(instance, moves)
  for (const { vm } of steps) numbered.push(units[vm]!.vms.map(() => ++count))
  return steps.flatMap(({ vm, from, to, needs, wave }, index) =>
    units[vm]!.vms.map(
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
export function unplacedOf({ units }: Names, left: readonly number[], instance: Instance): Plan['unplaced'] {
  return left.flatMap((index) => {
    const isBarred = !instance.allows[instance.rule[index]!]!.includes(true)
    const reason = isBarred ? 'no live host is allowed to it' : 'no room was found'
    return units[index]!.vms.map(({ vm, priority, haGroup }) => ({ vm, reason, priority, haGroup }))
  })
}

/** What shows that fewer do not do. A certificate that does not hold is no proof, and its bound is not claimed. */
function provedBy(
  problem: PlacementProblem,
  { how, atLeast, certificate }: Known,
): { lowerBound: number; proof: Proof } {
  if (how !== 'certificate') return { lowerBound: atLeast, proof: { kind: how } }
  if (certificate && holds(problem, certificate))
    return { lowerBound: atLeast, proof: { kind: 'certificate', ...certificate } }
  return { lowerBound: 0, proof: { kind: 'trivial' } }
}
