import { z } from 'zod'
import { storeProposal } from '../db/inventory/proposals.ts'
import type { PlacementProblem, Plan, PlanStep } from '../domain/placement.ts'
import { planDigest, stateFingerprint } from '../placement/plan.ts'
import { verifyPlan } from '../placement/verify.ts'
import { type EffectDeps, EffectRefused } from './effect.ts'
import { readCurrentState } from './plan-state.ts'

/** The moves that undo a plan, as the plan's row recorded them. */
export const movesBack = z.object({
  moves: z.array(z.object({ vm: z.string(), from: z.string(), to: z.string() })).min(1),
})

/**
 * Fields of a plan that have no meaning for moves back: no search made the moves, and each step is
 * verified against the current state.
 */
const plain = { lowerBound: 0, proof: { kind: 'engine' }, unplaced: [], obstacle: null, standing: null } as const

/**
 * Stores the plan that moves VMs back to their hosts, one after the other, and returns its id.
 * Refuses if a host may not take its VM back: the host is down, to be emptied, full, or barred by a
 * rule.
 */
export async function storePlanBack(
  deps: EffectDeps,
  { moves, incidentId }: z.infer<typeof movesBack> & { incidentId: string },
): Promise<string> {
  const state = await readCurrentState(deps)
  const problem: PlacementProblem = {
    intent: 'rebalance',
    hostIds: [],
    vmIds: null,
    useRackConstraints: true,
    limits: deps.placement.limits,
    ...state,
  }
  const steps: PlanStep[] = moves.map(({ vm, from, to }, at) => {
    const { priority, haGroup } = state.vms.find((each) => each.vm === vm) ?? {}
    const needs = at === 0 ? [] : [at]
    return { step: at + 1, action: 'migrate', vm, from, to, needs, wave: at + 1, priority, haGroup }
  })
  const asPlan = (of: 'planned' | 'partial'): Plan => ({
    ...plain,
    unplaced: [],
    state: of,
    steps,
    migrations: steps.length,
    reason: null,
  })
  // Tries a complete plan first, which must break no rule at its end. Then tries a partial plan,
  // which may restore a state in which a rule was already broken.
  const plans = [asPlan('planned'), asPlan('partial')]
  const plan = plans.find((each) => verifyPlan(problem, each).ok)
  if (!plan) {
    const verified = verifyPlan(problem, asPlan('planned'))
    const why = verified.ok ? '' : verified.reason
    throw new EffectRefused('conflict', 'NO_WAY_BACK', `The VM cannot move back now: ${why}. Nothing was undone.`)
  }
  const stored = await storeProposal(
    deps.db,
    {
      ...plan,
      incidentId,
      intent: 'rebalance',
      hostIds: [],
      fromInventory: true,
      planDigest: planDigest(steps),
      stateFingerprint: stateFingerprint(problem),
    },
    problem,
  )
  return stored.id
}
