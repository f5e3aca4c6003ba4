import { append } from '../db/append.ts'
import type { Db } from '../db/connect.ts'
import type { IncidentEvent, NewEvent } from '../domain/event.ts'
import type { PlanStep, Proposal } from '../domain/placement.ts'
import { siblingKey } from '../domain/step-key.ts'
import type { Ending } from './effect.ts'

/** SKIPPED: never started, because a step before it failed, the state changed, or the run was cancelled. */
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
export function buildPlanEnding(outcomes: StepOutcome[], nextProposalId: string | null = null): Ending {
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
    result: { steps, failed, skipped, ...next },
  }
}
