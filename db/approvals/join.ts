import type { ApprovalStatus } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type RunRef, stepKey } from '../../domain/step-key.ts'
import type { Db } from '../connect.ts'
import { append } from '../log/append.ts'
import { eventsOf } from '../log/events.ts'

type Answer = IncidentEvent<'approval_decided'> | IncidentEvent<'approval_expired'>

/**
 * Informs a run that waited for another incident's question about the decision: writes the row with
 * the person's words again, under the call of the waiting run and marked as joined. The vote stays
 * in the incident in which it was given. An approval or a change of arguments needs no row, because
 * the policy check sees it when the run returns to its call. A repetition writes nothing.
 */
export async function tellJoined(
  db: Db,
  run: RunRef,
  { id, incidentId, status }: { id: string; incidentId: string; status: ApprovalStatus },
): Promise<void> {
  if (status !== 'denied' && status !== 'expired') return
  const said = (await eventsOf(db, incidentId)).findLast((event): event is Answer => isAnswer(event, id))
  const asked = (await eventsOf(db, run.incidentId, { attempt: run.attempt })).findLast(
    (event): event is IncidentEvent<'call_judged'> =>
      event.kind === 'call_judged' && event.metadata.approvalId === id && event.metadata.joins === incidentId,
  )
  if (!said || !asked) return
  // Uses the action digest of the waiting run's own call. Its resource may have another name, and
  // the denial must cover this name.
  const { callId, actionDigest } = asked.metadata
  await db.transaction().execute(async (trx) => {
    await append(trx, run.incidentId, run.attempt, {
      kind: said.kind,
      actor: said.actor,
      turn: asked.turn,
      stepKey: stepKey(run, asked.turn ?? 0, said.kind, 0, id),
      detail: `${said.detail} (asked for ${incidentId})`,
      metadata: {
        ...said.metadata,
        callId,
        joined: incidentId,
        ...(said.kind === 'approval_decided' && { actionDigest }),
      },
    } as Parameters<typeof append>[3])
  })
}

const isAnswer = (event: IncidentEvent, id: string): boolean =>
  (event.kind === 'approval_decided' || event.kind === 'approval_expired') && event.metadata.approvalId === id
