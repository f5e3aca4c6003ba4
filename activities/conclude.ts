import type { Db, Trx } from '../db/connect.ts'
import { closeIncident } from '../db/incidents/close-incident.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { append } from '../db/log/append.ts'
import { eventByStepKey, eventsOf } from '../db/log/events.ts'
import type { Claim } from '../domain/claim.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { questionType } from '../domain/question.ts'
import { stepKey, type TurnRef } from '../domain/step-key.ts'
import { callsPerAnswer } from '../model/transcript.ts'
import { fold, type SafetyState } from '../safety/fold.ts'
import { answerCorrection, hasWarnedOfProse, proseCorrection } from '../safety/prose.ts'
import { tools } from '../tools/registry.ts'
import type { TurnOutcome } from '../workflows/outcome.ts'
import { bodiesOfEnding } from './reason.ts'

/**
 * Carries out the consequences of a committed answer. Every row has its step key, so a repetition
 * changes nothing.
 */
export async function conclude(db: Db, turn: TurnRef, answered: IncidentEvent<'model_answered'>): Promise<TurnOutcome> {
  const { calls, final, problem } = answered.metadata
  if (problem) {
    await correct(db, turn, problem)
    return { kind: 'correction' }
  }
  if (!final) {
    const run = calls.slice(0, callsPerAnswer)
    return { kind: 'calls', calls: run.map((call) => (tools.has(call.tool) ? call.tool : 'unknown')) }
  }
  return await db.transaction().execute(async (trx) => await concludeProse(trx, turn, final))
}

async function correct(db: Db | Trx, turn: TurnRef, problem: { code: string; text: string }): Promise<void> {
  const write = async (trx: Trx) => {
    await append(trx, turn.incidentId, turn.attempt, {
      kind: 'correction_sent',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'correction_sent', 0),
      detail: `Asked the model to correct its answer: ${problem.code}`,
      metadata: problem,
    })
  }
  if (db.isTransaction) await write(db as Trx)
  else await db.transaction().execute(write)
}

/**
 * Handles an answer in prose, which is recorded as a comment. Prose may answer a question but
 * resolves nothing else, because prose proves nothing. The model gets one correction; after that a
 * person gets the incident.
 */
async function concludeProse(
  trx: Trx,
  turn: TurnRef,
  final: NonNullable<EventMetadata['model_answered']['final']>,
): Promise<TurnOutcome> {
  const { inserted } = await append(trx, turn.incidentId, turn.attempt, {
    kind: 'commented',
    actor: agentActor,
    turn: turn.turn,
    stepKey: stepKey(turn, turn.turn, 'commented', 0),
    detail: final.text.slice(0, 2000).toWellFormed(),
    metadata: { text: final.text, confidence: final.confidence, action: null },
  })
  const events = await eventsOf(trx, turn.incidentId)
  const state: SafetyState = fold(events, turn.attempt)
  const incident = await incidentById(trx, turn.incidentId)
  const said = { text: final.text, claims: citedBy(final.claims ?? []) }
  const wrong = answerCorrection(said, state, turn.incidentId, await bodiesOfEnding(trx, events, turn.attempt))
  if (incident?.type === questionType && !state.open && !wrong) {
    const closing = {
      status: 'resolved' as const,
      outcome: 'answered' as const,
      resolution: final.text,
      claims: said.claims.map((each) => ({ ...each, shown: true })),
      confidence: final.confidence,
    }
    const by = { actor: agentActor, turn: turn.turn, stepKey: stepKey(turn, turn.turn, 'resolved', 0) }
    await closeIncident(trx, turn.incidentId, turn.attempt, closing, by)
    return { kind: 'closed' }
  }
  const corrected = await eventByStepKey(trx, stepKey(turn, turn.turn, 'correction_sent', 0), 'correction_sent')
  if (!inserted && corrected) return { kind: 'correction' }
  if (hasWarnedOfProse(state)) return { kind: 'unproven' }
  await correct(trx, turn, wrong ?? proseCorrection(state))
  return { kind: 'correction' }
}

/**
 * Reads the claims that quote rows. Claims of older versions only cite row numbers, which show
 * nothing.
 */
function citedBy(claims: NonNullable<NonNullable<EventMetadata['model_answered']['final']>['claims']>): Claim[] {
  return claims.flatMap((each) => ('quotes' in each ? [{ kind: each.kind, text: each.text, quotes: each.quotes }] : []))
}
