import { append } from '../db/append.ts'
import type { Db } from '../db/connect.ts'
import type { NewEvent } from '../domain/event.ts'
import type { PlanStep, Proposal } from '../domain/placement.ts'
import type { Executor, StepOutcome } from './execute-plan.ts'

/** The rows of a plan that is carried out: one when a step begins, one when it has ended. A row is written once, however often. */
export async function noteStarted(
  db: Db,
  plan: Proposal,
  by: Executor,
  { step, action, vm, to }: PlanStep,
): Promise<void> {
  const callId = by.judged?.metadata.callId ?? by.key
  await write(db, plan, by, step, {
    kind: 'step_started',
    detail: `Step ${step}: ${action} ${vm} on ${to}`,
    metadata: { callId, step, action, vm, to },
  })
}

export async function noteFinished(
  db: Db,
  plan: Proposal,
  by: Executor,
  { step, vm }: PlanStep,
  { status, detail }: Pick<StepOutcome, 'status' | 'detail'>,
): Promise<void> {
  const callId = by.judged?.metadata.callId ?? by.key
  await write(db, plan, by, step, {
    kind: 'step_finished',
    detail: `Step ${step} (${vm}): ${status}: ${detail}`,
    metadata: { callId, step, status, detail },
  })
}

type Row<K extends 'step_started' | 'step_finished'> = Omit<NewEvent<K>, 'actor' | 'turn' | 'stepKey'>

async function write<K extends 'step_started' | 'step_finished'>(
  db: Db,
  { incidentId }: Proposal,
  by: Executor,
  step: number,
  row: Row<K>,
): Promise<void> {
  if (incidentId === null) return
  const base = by.key.includes(':tool_started:')
    ? by.key.replace(':tool_started:', `:${row.kind}:`)
    : `${by.key}:${row.kind}`
  const turn = by.judged?.turn ?? null
  const event = { ...row, actor: by.actor, turn, stepKey: `${base}:${step}` } as NewEvent<K>
  await db.transaction().execute((trx) => append(trx, incidentId, null, event))
}
