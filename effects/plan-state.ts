import { placementState } from '../db/proposals.ts'
import type { PlacementProblem, Proposal } from '../domain/placement.ts'
import { type State, stateFingerprint } from '../placement/state.ts'
import { verifyPlan } from '../placement/verify.ts'
import { type EffectDeps, EffectRefused } from './effect.ts'

export type StoredPlan = { proposal: Proposal; problem: PlacementProblem }

/** Hosts and VMs as the platform reports them now. */
export async function readCurrentState({ db, state }: Pick<EffectDeps, 'db' | 'state'>): Promise<State> {
  state.forget()
  await state.requireCurrent()
  return await placementState(db)
}

/**
 * The state that was approved is still the platform's state, and the plan still fits it: read from the platform just now.
 * Answers that state.
 */
export async function requireUnchanged(
  deps: EffectDeps,
  { proposal: plan, problem }: StoredPlan,
  ifMatch: string | undefined,
): Promise<State> {
  if (!plan.fromInventory) {
    throw new EffectRefused(
      'conflict',
      'NOT_OF_THE_INVENTORY',
      `${plan.id} is for hosts that somebody made up: it is never carried out.`,
    )
  }
  if (plan.state !== 'planned' && plan.state !== 'partial') {
    throw new EffectRefused('conflict', 'NOT_PLANNED', `${plan.id} is ${plan.state}: nothing to execute.`)
  }
  if (!ifMatch) {
    const detail = 'If-Match: name the state that this was decided for.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  const today = await readCurrentState(deps)
  const current = stateFingerprint(today)
  if (!isSameFingerprint(ifMatch, current)) {
    const detail = 'Hosts or VMs are not as they were when this was decided. Nothing was started.'
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail, { fields: { currentFingerprint: current } })
  }
  const reason = whyUnfit(deps, { proposal: plan, problem }, today)
  if (reason) {
    const detail = `The plan does not fit today's state: ${reason}. Nothing was started.`
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail)
  }
  return today
}

/** Compares the entity tag of an `If-Match` header, weak or strong, quoted or not. */
export function isSameFingerprint(ifMatch: string, fingerprint: string): boolean {
  return ifMatch.replace(/^(?:W\/)?"(.*)"$/, '$1') === fingerprint
}

/** Why a plan cannot be carried out in this state; null when it can. */
export function whyUnfit(
  { placement }: Pick<EffectDeps, 'placement'>,
  { proposal, problem }: StoredPlan,
  today: Pick<PlacementProblem, 'hosts' | 'vms'>,
): string | null {
  const verified = verifyPlan({ ...problem, ...today, limits: placement.limits }, proposal)
  return verified.ok ? null : `${verified.step > 0 ? `step ${verified.step}: ` : ''}${verified.reason}`
}
