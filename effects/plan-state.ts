import type { Db } from '../db/connect.ts'
import { placementState } from '../db/inventory/proposals.ts'
import { append } from '../db/log/append.ts'
import type { Changed } from '../domain/changed.ts'
import type { IncidentEvent, NewEvent } from '../domain/event.ts'
import type { PlacementProblem, PlanStep, Proposal } from '../domain/placement.ts'
import { siblingKey } from '../domain/step-key.ts'
import { type ClusterState, stateFingerprint } from '../placement/plan.ts'
import { verifyPlan } from '../placement/verify.ts'
import { type EffectDeps, EffectRefused, type Ending } from './effect.ts'

export type StoredPlan = { proposal: Proposal; problem: PlacementProblem }

/** Reads hosts and VMs as the platform reports them now. */
export async function readCurrentState({ db, state }: Pick<EffectDeps, 'db' | 'state'>): Promise<ClusterState> {
  state.forget()
  await state.requireCurrent()
  return await placementState(db)
}

/**
 * Requires that the platform, read just now, is still in the approved state, and that the plan
 * still fits. Returns the state of the platform.
 */
export async function requireUnchanged(
  deps: EffectDeps,
  { proposal: plan, problem }: StoredPlan,
  ifMatch: string | undefined,
): Promise<ClusterState> {
  if (!plan.fromInventory) {
    throw new EffectRefused(
      'conflict',
      'NOT_OF_THE_INVENTORY',
      `${plan.id} is for hosts that are not in the inventory, so the plan never runs.`,
    )
  }
  if (plan.state !== 'planned' && plan.state !== 'partial') {
    throw new EffectRefused('conflict', 'NOT_PLANNED', `${plan.id} is ${plan.state}, so there is nothing to execute.`)
  }
  if (!ifMatch) {
    const detail = 'If-Match: send the fingerprint of the approved state.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  const today = await readCurrentState(deps)
  const current = stateFingerprint(today)
  if (!isSameFingerprint(ifMatch, current)) {
    const detail = 'Hosts or VMs changed since the approval. Nothing was started.'
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail, { fields: { currentFingerprint: current } })
  }
  const reason = whyUnfit(deps, { proposal: plan, problem }, today)
  if (reason) {
    const detail = `The plan does not fit the present state: ${reason}. Nothing was started.`
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail)
  }
  return today
}

/**
 * Compares a fingerprint with the entity tag of an `If-Match` header, weak or strong, quoted or
 * not.
 */
export function isSameFingerprint(ifMatch: string, fingerprint: string): boolean {
  return ifMatch.replace(/^(?:W\/)?"(.*)"$/, '$1') === fingerprint
}

/** Returns why a plan cannot be carried out in this state; null if it can. */
export function whyUnfit(
  { placement }: Pick<EffectDeps, 'placement'>,
  { proposal, problem }: StoredPlan,
  today: Pick<PlacementProblem, 'hosts' | 'vms'>,
): string | null {
  const verified = verifyPlan({ ...problem, ...today, limits: placement.limits }, proposal)
  return verified.ok ? null : `${verified.step > 0 ? `step ${verified.step}: ` : ''}${verified.reason}`
}

/**
 * The status of a step. SKIPPED: it never started, because an earlier step failed, the state
 * changed, or the run was cancelled.
 */
export type StepStatus = 'OK' | 'FAILED' | 'SKIPPED'
export type StepOutcome = { step: number; vm: string; to: string; status: StepStatus; detail: string }

/** The key of a plan's run, and the row of the log that announced the run. */
export type PlanActor = { key: string; actor: string; judged: IncidentEvent<'tool_started'> | null }

/** Writes the row of a step that starts. Repeated calls write no second row. */
export async function writeStepStarted(
  db: Db,
  plan: Proposal,
  by: PlanActor,
  { step, action, vm, to }: PlanStep,
): Promise<void> {
  const callId = by.judged?.metadata.callId ?? by.key
  await writeRow(db, plan, by, step, {
    kind: 'step_started',
    detail: `Step ${step}: ${action} ${vm} on ${to}`,
    metadata: { callId, step, action, vm, to },
  })
}

/** Writes the row of a step that has ended. Repeated calls write no second row. */
export async function writeStepFinished(
  db: Db,
  plan: Proposal,
  by: PlanActor,
  { step, vm, status, detail }: StepOutcome,
): Promise<void> {
  const callId = by.judged?.metadata.callId ?? by.key
  await writeRow(db, plan, by, step, {
    kind: 'step_finished',
    detail: `Step ${step} (${vm}): ${status}: ${detail}`,
    metadata: { callId, step, status, detail },
  })
}

type Row<K extends 'step_started' | 'step_finished'> = Omit<NewEvent<K>, 'actor' | 'turn' | 'stepKey'>

async function writeRow<K extends 'step_started' | 'step_finished'>(
  db: Db,
  { incidentId }: Proposal,
  by: PlanActor,
  step: number,
  row: Row<K>,
): Promise<void> {
  if (incidentId === null) return
  const base = siblingKey(by.key, row.kind) ?? `${by.key}:${row.kind}`
  const turn = by.judged?.turn ?? null
  const event = { ...row, actor: by.actor, turn, stepKey: `${base}:${step}` } as NewEvent<K>
  await db.transaction().execute((trx) => append(trx, incidentId, null, event))
}

/** Builds the ending of a plan, with the counts of its steps. */
export function buildPlanEnding(
  outcomes: StepOutcome[],
  planned: readonly PlanStep[],
  nextProposalId: string | null = null,
): Ending {
  const steps = outcomes.sort((a, b) => a.step - b.step)
  const count = (status: StepStatus) => steps.filter((step) => step.status === status).length
  const [ok, failed, skipped] = [count('OK'), count('FAILED'), count('SKIPPED')]
  const parts = [
    failed > 0 ? `${failed} failed` : '',
    skipped > 0 ? `${skipped} ${skipped === 1 ? 'was' : 'were'} not begun` : '',
  ].filter(Boolean)
  const why = steps.find(({ status }) => status !== 'OK')?.detail
  const detail =
    parts.length === 0
      ? `all ${steps.length} steps were done`
      : `${ok} of ${steps.length} steps were done, ${parts.join(', ')}: ${why}`
  const next = nextProposalId === null ? {} : { next_proposal_id: nextProposalId }
  return {
    status: ok === 0 && steps.length > 0 ? 'failed' : 'done',
    detail,
    result: { steps, failed, skipped, changed: changedBy(steps, planned), ...movedBy(steps, planned), ...next },
  }
}

/**
 * Lists the VMs that the plan moved, with the hosts they came from, and the VMs that it started.
 * The plan's undo depends on these VMs.
 */
function movedBy(steps: readonly StepOutcome[], planned: readonly PlanStep[]) {
  const done = steps.filter(({ status }) => status === 'OK')
  const stepOf = (number: number) => planned.find((each) => each.step === number)
  const moves = done.flatMap(({ step, vm, to }) => {
    const from = stepOf(step)?.from
    return stepOf(step)?.action === 'migrate' && from ? [{ vm, from, to }] : []
  })
  return { moves, started: done.flatMap(({ step, vm }) => (stepOf(step)?.action === 'start' ? [vm] : [])) }
}

/**
 * Lists the moves and starts of done steps: the VM was elsewhere before its step, and on the new
 * host after it. The result of a failed step is unknown.
 */
function changedBy(steps: readonly StepOutcome[], planned: readonly PlanStep[]): Changed {
  const done = steps.filter(({ status }) => status === 'OK')
  if (done.length === 0) return steps.some(({ status }) => status === 'FAILED') ? null : []
  return done.map(({ step, vm, to }) => {
    const isStart = planned.find((each) => each.step === step)?.action === 'start'
    return `${vm} ${isStart ? 'started on' : 'moved to'} ${to}`
  })
}
