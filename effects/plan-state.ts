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

/** Hosts and VMs as the platform reports them now. */
export async function readCurrentState({ db, state }: Pick<EffectDeps, 'db' | 'state'>): Promise<ClusterState> {
  state.forget()
  await state.requireCurrent()
  return await placementState(db)
}

/**
 * The approved state is still the platform's, and the plan still fits: read just now. Answers that
 * state.
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

/** SKIPPED: never started: an earlier step failed, the state changed, or the run was cancelled. */
export type StepStatus = 'OK' | 'FAILED' | 'SKIPPED'
export type StepOutcome = { step: number; vm: string; to: string; status: StepStatus; detail: string }

/** Under whose key a plan runs, and the row of the log that announced it. */
export type PlanActor = { key: string; actor: string; judged: IncidentEvent<'tool_started'> | null }

/** Writes the row of a step that starts. Each row is written once, however often this is called. */
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

/** Writes the row of a step that has ended, once. */
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

/** How a plan ended, counted over its steps. */
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

/** Which VMs it moved from where, and which it started: by that it is taken back, or not. */
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
 * Moves and starts: the VM was read elsewhere before its step, and there after it. Nobody knows
 * what a failed step left.
 */
function changedBy(steps: readonly StepOutcome[], planned: readonly PlanStep[]): Changed {
  const done = steps.filter(({ status }) => status === 'OK')
  if (done.length === 0) return steps.some(({ status }) => status === 'FAILED') ? null : []
  return done.map(({ step, vm, to }) => {
    const isStart = planned.find((each) => each.step === step)?.action === 'start'
    return `${vm} ${isStart ? 'started on' : 'moved to'} ${to}`
  })
}
