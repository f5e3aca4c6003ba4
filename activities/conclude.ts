import { append } from '../db/append.ts'
import type { Db, Trx } from '../db/connect.ts'
import { eventByStepKey, eventsOf } from '../db/events.ts'
import { closeIncident, incidentById } from '../db/incidents.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { type Claim, evidenceRule } from '../safety/end.ts'
import { fold, type State } from '../safety/fold.ts'
import { phantomOf } from '../safety/phantom.ts'
import { tools } from '../tools/registry.ts'
import type { Thought } from '../workflows/outcome.ts'
import { stepKey, type Turn } from './step-key.ts'

/** What follows from a committed answer. Every row it writes has its step key, so concluding twice is concluding once. */
export async function conclude(db: Db, turn: Turn, answered: IncidentEvent<'model_answered'>): Promise<Thought> {
  const { calls, final, problem } = answered.metadata
  if (problem) {
    await correct(db, turn, problem)
    return { kind: 'correction' }
  }
  if (!final) return { kind: 'calls', calls: calls.map((call) => (tools.has(call.tool) ? call.tool : 'unknown')) }
  return await db.transaction().execute(async (trx) => await concludeProse(trx, turn, final))
}

async function correct(db: Db | Trx, turn: Turn, problem: { code: string; text: string }): Promise<void> {
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
 * Prose is a comment. It answers a question; it never resolves anything else, for nothing in it is proved. One correction,
 * then a person gets it.
 */
async function concludeProse(
  trx: Trx,
  turn: Turn,
  final: NonNullable<EventMetadata['model_answered']['final']>,
): Promise<Thought> {
  const { inserted } = await append(trx, turn.incidentId, turn.attempt, {
    kind: 'commented',
    actor: agentActor,
    turn: turn.turn,
    stepKey: stepKey(turn, turn.turn, 'commented', 0),
    detail: final.text.slice(0, 2000).toWellFormed(),
    metadata: { text: final.text, confidence: final.confidence, action: null },
  })
  const state: State = fold(await eventsOf(trx, turn.incidentId), turn.attempt)
  const incident = await incidentById(trx, turn.incidentId)
  const claims = final.claims ?? []
  const wrong = answerCorrection(final.text, claims, state)
  if (incident?.type === 'question' && !state.open && (!wrong || state.corrected.has(wrong.code))) {
    await closeIncident(
      trx,
      turn.incidentId,
      turn.attempt,
      {
        status: 'resolved',
        outcome: 'no_fault',
        resolution: final.text,
        claims: proved(claims, state),
        confidence: final.confidence,
      },
      { actor: agentActor, turn: turn.turn, stepKey: stepKey(turn, turn.turn, 'resolved', 0) },
    )
    return { kind: 'closed' }
  }
  const corrected = await eventByStepKey(trx, stepKey(turn, turn.turn, 'correction_sent', 0))
  if (!inserted && corrected) return { kind: 'correction' }
  if (proseCodes.some((code) => state.corrected.has(code))) return { kind: 'unproven' }
  await correct(trx, turn, wrong ?? proseCorrection(state))
  return { kind: 'correction' }
}

const proseCodes = ['prose_without_proof', 'phantom_claim', 'evidence_missing']

/** Claims that stand: one that cites a row which shows nothing is left out of what is recorded as proved. */
function proved(claims: readonly Claim[], state: State): Claim[] {
  return claims.filter((claim) => evidenceRule([claim], state) === null)
}

/** What is wrong with an answer in words: it claims what no row shows (seed 001, section 8), or cites what shows nothing. */
function answerCorrection(text: string, claims: readonly Claim[], state: State): { code: string; text: string } | null {
  const phantom = phantomOf(text, { writes: state.writes.length, reads: state.reads })
  if (phantom) {
    return {
      code: 'phantom_claim',
      text: `No row shows what you claim (${phantom.category}). Nothing was run by your text. Call tools, and cite their results.`,
    }
  }
  const missing = evidenceRule(claims, state)
  return missing ? { code: 'evidence_missing', text: `${missing.reason}. ${missing.hint ?? ''}` } : null
}

function proseCorrection(state: State): { code: string; text: string } {
  return {
    code: 'prose_without_proof',
    text: state.open
      ? 'A write is not verified yet. Read its target, then call resolve_incident with evidence, or escalate_incident.'
      : 'Prose resolves nothing. Call resolve_incident with claims that cite meta.seq of results, or escalate_incident.',
  }
}
