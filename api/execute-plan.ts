import type { PlatformClient } from '../clients/platform.ts'
import { append } from '../db/append.ts'
import { notePlanOfEffect } from '../db/steps.ts'
import type { IncidentEvent, NewEvent } from '../domain/event.ts'
import type { PlanStep, Proposal } from '../domain/placement.ts'
import type { ApiDeps } from './deps.ts'
import { type Ending, platformEnding } from './platform-ending.ts'

export type PlacementStepOutcome = { step: number; vm: string; to: string; status: 'OK' | 'FAILED'; detail: string }

/**
 * Carries a plan out, step after step in its order, each under a key of its own and between two rows of the incident. A step
 * that fails does not stop those behind it: half of the VMs up is better than none. Null: of some step it cannot be told.
 */
export async function executePlan(
  deps: ApiDeps,
  platform: PlatformClient,
  plan: Proposal,
  by: { key: string; actor: string; judged: IncidentEvent<'tool_started'> | null },
): Promise<Ending | null> {
  await notePlanOfEffect(deps.db, by.key, plan.id)
  const outcomes: PlacementStepOutcome[] = []
  let untold = false
  for (const step of plan.steps) {
    const callId = by.judged?.metadata.callId ?? by.key
    const { vm, to } = step
    await record(deps, plan, by, step.step, {
      kind: 'step_started',
      detail: `Step ${step.step}: ${step.action} ${vm} on ${to}`,
      metadata: { callId, step: step.step, action: step.action, vm, to },
    })
    const ending = await sendStep(platform, step, `${by.key}:${step.step}`)
    untold ||= ending === null
    const status = ending?.status === 'done' ? 'OK' : 'FAILED'
    const detail = ending?.detail ?? 'it cannot be told whether this took effect'
    await record(deps, plan, by, step.step, {
      kind: 'step_finished',
      detail: `Step ${step.step}: ${status}: ${detail}`,
      metadata: { callId, step: step.step, status, detail },
    })
    outcomes.push({ step: step.step, vm, to, status, detail })
  }
  return untold ? null : planEnding(outcomes)
}

export function planEnding(steps: PlacementStepOutcome[]): Ending {
  const failed = steps.filter((step) => step.status === 'FAILED').length
  const detail =
    failed === 0
      ? `all ${steps.length} steps were done`
      : `${failed} of ${steps.length} steps failed, the others were done`
  return { status: failed === steps.length && failed > 0 ? 'failed' : 'done', detail, result: { steps, failed } }
}

async function sendStep(platform: PlatformClient, { action, vm, from, to }: PlanStep, key: string) {
  if (action === 'start') return await platformEnding(platform, key, () => platform.startVm(vm, to, key))
  if (from === null) return { status: 'failed' as const, detail: 'a migration without a start', result: {} }
  return await platformEnding(platform, key, () => platform.migrateVm(vm, { from, to }, key))
}

type Row<K extends 'step_started' | 'step_finished'> = Omit<NewEvent<K>, 'actor' | 'turn' | 'stepKey'>

async function record<K extends 'step_started' | 'step_finished'>(
  deps: ApiDeps,
  plan: Proposal,
  by: { key: string; actor: string; judged: IncidentEvent<'tool_started'> | null },
  step: number,
  row: Row<K>,
): Promise<void> {
  const { incidentId } = plan
  if (incidentId === null) return
  const base = by.key.includes(':tool_started:')
    ? by.key.replace(':tool_started:', `:${row.kind}:`)
    : `${by.key}:${row.kind}`
  await deps.db.transaction().execute((trx) =>
    append(trx, incidentId, null, {
      ...row,
      actor: by.actor,
      turn: by.judged?.turn ?? null,
      stepKey: `${base}:${step}`,
    } as NewEvent<K>),
  )
}
