import type { Db } from '../db/connect.ts'
import { type Closing, closeIncident } from '../db/incidents/close-incident.ts'
import { forgetReview } from '../db/incidents/manual-change.ts'
import { endUndo } from '../db/writes/undo.ts'
import type { EventKind, IncidentEvent } from '../domain/event.ts'
import { formatVerification } from '../domain/format-approval.ts'
import type { ManualChange } from '../domain/manual-change.ts'
import { stepKey, type TurnRef } from '../domain/step-key.ts'
import type { TurnOutcome } from '../workflows/outcome.ts'

/**
 * Takes the turns of a person's own write, without a model. The first turn proposes the one call;
 * the next closes the incident by the outcome of that call.
 */
export async function takeManualTurn(
  db: Db,
  turn: TurnRef,
  change: ManualChange,
  events: readonly IncidentEvent[],
): Promise<TurnOutcome> {
  if (turn.turn === 1) return { kind: 'calls', calls: [change.tool] }
  const by = { actor: change.actor, turn: turn.turn, stepKey: stepKey(turn, turn.turn, 'resolved', 0) }
  const closing = closingOf(change, events)
  await db.transaction().execute(async (trx) => {
    await closeIncident(trx, turn.incidentId, turn.attempt, closing, by)
    // Removes the review, because a write that was not done needs none.
    if (closing.status === 'cancelled') await forgetReview(trx, turn.incidentId)
    if (change.undoes) await endUndo(trx, { ...change, undoes: change.undoes, ...saidOf(closing), by: turn.incidentId })
  })
  return { kind: 'closed' }
}

function saidOf(closing: Closing): { said: string; isDone: boolean } {
  const isDone = closing.status === 'resolved'
  return { said: closing.status === 'resolved' ? closing.resolution : closing.reason, isDone }
}

/**
 * Codes of refusals before anything was begun, because the state differs from the one that the undo
 * expects.
 */
const beforeBegun: readonly unknown[] = ['UNDO_MOVED_ON', 'STATE_CHANGED', 'conflict']

function closingOf({ tool, name, undoes }: ManualChange, events: readonly IncidentEvent[]): Closing {
  const finished = newest(events, 'tool_finished')
  if (!finished) return { status: 'cancelled', reason: `${whyNotDone(events)}. Nothing was done.` }
  const verified = newest(events, 'verification')
  const outcome = verified?.metadata.outcome ?? 'unproven'
  const looked = verified?.metadata.observed ? `: ${verified.metadata.observed}` : ''
  const said = `${tool} by ${name}: ${formatVerification(outcome).toLowerCase()}${looked}`
  if (finished.metadata.outcome === 'done' && (outcome === 'held' || outcome === 'unproven'))
    return { status: 'resolved', resolution: said, outcome: 'changed', claims: [], confidence: null }
  const { message: error, details } = finished.metadata.result.error ?? {}
  if (undoes && finished.metadata.outcome === 'failed' && beforeBegun.includes(details?.rule))
    return { status: 'cancelled', reason: `Refused (UNDO_MOVED_ON): ${error}` }
  return {
    status: 'escalated',
    code: 'MANUAL_CHANGE_FAILED',
    reason: error ? `${tool} by ${name} failed: ${error}` : said,
  }
}

function whyNotDone(events: readonly IncidentEvent[]): string {
  const denied = events.findLast((event) => event.kind === 'approval_decided' && event.metadata.decision === 'deny')
  if (denied) return denied.detail
  const judged = newest(events, 'call_judged')
  return judged?.metadata.verdict === 'refuse'
    ? `Refused (${judged.metadata.code}): ${judged.metadata.reason}`
    : 'The change did not begin'
}

function newest<K extends EventKind>(events: readonly IncidentEvent[], kind: K): IncidentEvent<K> | undefined {
  return events.findLast((event) => event.kind === kind) as IncidentEvent<K> | undefined
}
