import { activityInfo, cancellationSignal } from '@temporalio/activity'
import type { Db, Trx } from '../db/connect.ts'
import { closeIncident } from '../db/incidents/close-incident.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { append, StaleRunError } from '../db/log/append.ts'
import { inlineLimitBytes, storeBody } from '../db/log/bodies.ts'
import { eventByStepKey, eventsOf } from '../db/log/events.ts'
import { costOfAnswer, recordSpend, spentCap } from '../db/models/spend.ts'
import type { Claim } from '../domain/claim.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { type Message, unreadOf } from '../domain/message.ts'
import { callId, type Run, stepKey, type Turn } from '../domain/step-key.ts'
import type { ParsedAnswer } from '../model/protocol.ts'
import { callsPerAnswer } from '../model/transcript.ts'
import {
  type ClaimedText,
  findingsOf,
  findUnsupportedClaim,
  isAllShown,
  toldFindings,
} from '../safety/claims/ending.ts'
import { evidenceRule } from '../safety/ending.ts'
import { fold, type State } from '../safety/fold.ts'
import { isSecretive } from '../safety/redact.ts'
import { budgetsOf, nearBudget, spentBudget } from '../safety/ruling.ts'
import { tools } from '../tools/registry.ts'
import type { Thought, Waited } from '../workflows/outcome.ts'
import { assertOwnRun, NonRetryable, RetryLater, withHeartbeat } from './activity.ts'
import { type Answered, type AskDeps, askModel } from './ask-model.ts'
import {
  type ModelRoutes,
  modelFor,
  type RoutedModel,
  type Slots,
  type Turned,
  waitForSlot,
  withSlot,
} from './model-server.ts'
import { bodiesOfEnding } from './reason.ts'

/** What follows from a committed answer. Every row it writes has its step key, so concluding twice is concluding once. */
async function conclude(db: Db, turn: Turn, answered: IncidentEvent<'model_answered'>): Promise<Thought> {
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
  const events = await eventsOf(trx, turn.incidentId)
  const state: State = fold(events, turn.attempt)
  const incident = await incidentById(trx, turn.incidentId)
  const said = { text: final.text, claims: citedBy(final.claims ?? []) }
  const wrong = answerCorrection(said, state, turn.incidentId, await bodiesOfEnding(trx, events, turn.attempt))
  if (incident?.type === 'question' && !state.open && !wrong) {
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
  if (proseCodes.some((code) => state.corrected.has(code))) return { kind: 'unproven' }
  await correct(trx, turn, wrong ?? proseCorrection(state))
  return { kind: 'correction' }
}

const proseCodes = ['prose_without_proof', 'phantom_claim', 'evidence_missing', 'claim_not_shown']

/** Claims of this version: what an answer stored by an older one cites are numbers of rows, which show nothing by themselves. */
function citedBy(claims: NonNullable<NonNullable<EventMetadata['model_answered']['final']>['claims']>): Claim[] {
  return claims.flatMap((each) => ('quotes' in each ? [{ kind: each.kind, text: each.text, quotes: each.quotes }] : []))
}

/**
 * What is wrong with an answer in words: it claims what no row shows, or quotes what does not stand there. It answers a
 * question and repairs nothing, so that what stays unshown after the correction closes nothing either.
 */
function answerCorrection(
  said: ClaimedText,
  state: State,
  incidentId: string,
  bodies: ReadonlyMap<string, string>,
): { code: string; text: string } | null {
  const phantom = findUnsupportedClaim(said.text, { writes: state.writes.length, reads: state.reads })
  if (phantom) {
    return {
      code: 'phantom_claim',
      text: `No row shows what you claim (${phantom.category}). Nothing was run by your text. Call tools, and quote their results.`,
    }
  }
  const missing = evidenceRule(said.claims, state)
  if (missing) return { code: 'evidence_missing', text: `${missing.reason}. ${missing.hint ?? ''}` }
  const findings = findingsOf(said, state, incidentId, bodies)
  if (isAllShown(findings)) return null
  const { reason, hint } = toldFindings(findings, said)
  return { code: 'claim_not_shown', text: `${reason}. ${hint}` }
}

function proseCorrection(state: State): { code: string; text: string } {
  return {
    code: 'prose_without_proof',
    text: state.open
      ? 'A write is not verified yet. Read its target, then call resolve_incident with claims that quote it, or escalate_incident.'
      : 'Prose resolves nothing. Call resolve_incident with claims that quote results by meta.seq, or escalate_incident.',
  }
}

/** `slots`: how many ask each server at once over all workers; without it nobody waits. */
type ThinkDeps = Omit<AskDeps, 'model' | 'served'> & {
  models: ModelRoutes
  slots?: Omit<Slots, 'server'>
}

/** So long a wait for a slot takes before it says how it stands. */
const waitMs = 20_000
/** A try that must not answer `waiting` waits so long by itself. */
const ownWaitMs = 60_000

export function thinkActivities(deps: ThinkDeps) {
  const { db, slots } = deps
  /** The model that the run asks next, out of its rows. */
  const chosen = async (run: Run, turn: number, events: readonly IncidentEvent[]) => {
    return await modelFor(db, deps.models, { ...run, turn }, events, contextOf(events, run.attempt))
  }
  return {
    /**
     * One turn of the model: asks, parses, and writes what was answered. The first `model_answered` row wins: a retry after a
     * crash finds it and pays for nothing twice. Answers closed words; throws RetryLater while the model may come back. With
     * `mayWait` it answers `waiting` where all slots are taken: the run has a place in the line then, and asks `awaitSlot`.
     */
    async think({ mayWait = false, ...turn }: Turn & { mayWait?: boolean }): Promise<Thought> {
      const signal = cancellationSignal()
      return await withHeartbeat(async () => {
        try {
          if ((await assertOwnRun(db, turn)) === 'closed') return { kind: 'closed' }
          const stored = await eventByStepKey(db, stepKey(turn, turn.turn, 'model_answered', 0), 'model_answered')
          if (stored) return await conclude(db, turn, stored)
          const events = await eventsOf(db, turn.incidentId)
          const state = fold(events, turn.attempt)
          const opening = contextOf(events, turn.attempt)
          const budgets = budgetsOf(events, turn.attempt, opening)
          // The loop counts turns; a run that something else drives is held to the limit here.
          if (turn.turn - state.corrections > budgets.turns) throw new NonRetryable('TURN_LIMIT')
          const spent = spentBudget(state, budgets)
          if (spent) return { kind: 'over_budget', budget: spent }
          if (await spentCap(db)) return { kind: 'over_budget', budget: 'money' }
          const warning = nearBudget(state, turn.turn, budgets)
          const told = warning ? [...events, await warn(db, turn, warning)] : events
          const model = await chosen(turn, turn.turn, told)
          const seat: AskDeps = { ...deps, model: model.client, served: model.served, route: model.name }
          const known = { ...opening, model: model.model }
          const asked = await inTurn(db, slotsOf(slots, model), turn, mayWait, async (waitedMs, lost) => {
            const answer = await askModel(seat, turn, told, known, AbortSignal.any([signal, lost]))
            return await write(db, turn, known, { ...answer, waitedMs, seat: model, read: unreadOf(told) })
          })
          return asked.taken ? await conclude(db, turn, asked.value) : { kind: 'waiting', ahead: asked.ahead }
        } catch (error) {
          if (error instanceof StaleRunError) return { kind: 'fenced' }
          throw error
        }
      })
    },

    /** Waits in the line of those who ask the model. `ready`: a slot is kept for the run, for as long as it takes to ask. */
    async awaitSlot(run: Run): Promise<Waited> {
      if (!slots || (await assertOwnRun(db, run)) === 'closed') return { kind: 'ready' }
      const events = await eventsOf(db, run.incidentId)
      const turns = events.filter(({ kind, attempt }) => kind === 'model_answered' && attempt === run.attempt).length
      const { served } = await chosen(run, turns + 1, events)
      const slot = await waitForSlot(db, { ...slots, server: served.server }, run, waitMs, cancellationSignal())
      return slot.held ? { kind: 'ready' } : { kind: 'waiting', ahead: slot.ahead }
    },
  }
}

function slotsOf(slots: ThinkDeps['slots'], { served }: RoutedModel): Slots | undefined {
  return slots && { ...slots, server: served.server }
}

type Ask<T> = (waitedMs: number, lost: AbortSignal) => Promise<T>

/**
 * Asks with a slot. Without a free one the workflow waits, where nothing runs out; but a try after a failure counts with that
 * failure's time, or a model that is down would be asked for ever.
 */
async function inTurn<T>(
  db: Db,
  slots: Slots | undefined,
  turn: Turn,
  mayWait: boolean,
  ask: Ask<T>,
): Promise<Turned<T>> {
  if (!slots) return { taken: true, value: await ask(0, new AbortController().signal) }
  const asked = await withSlot(db, slots, turn, ask)
  if (asked.taken || (mayWait && activityInfo().attempt === 1)) return asked
  await waitForSlot(db, slots, turn, ownWaitMs, cancellationSignal())
  // The next try finds the slot kept for it, and has all of its time for the answer.
  throw new RetryLater('MODEL_BUSY', 1)
}

export type ThinkActivities = ReturnType<typeof thinkActivities>

function contextOf(events: readonly IncidentEvent[], attempt: number): EventMetadata['context_assembled'] {
  const row = events.find((event) => event.kind === 'context_assembled' && event.attempt === attempt)
  if (row?.kind !== 'context_assembled') throw new NonRetryable('CONTEXT_MISSING')
  return row.metadata
}

/** Says that a limit is near: a row like any other, so that what the model was told is on record. */
async function warn(db: Db, turn: Turn, warning: { code: string; text: string }): Promise<IncidentEvent> {
  return await db.transaction().execute(async (trx) => {
    const { event } = await append(trx, turn.incidentId, turn.attempt, {
      kind: 'correction_sent',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'correction_sent', 0, 1),
      detail: `Told the model that a limit is near: ${warning.code}`,
      metadata: warning,
    })
    return event
  })
}

const contentLimit = inlineLimitBytes

async function write(
  db: Db,
  turn: Turn,
  { protocol, model }: Pick<EventMetadata['context_assembled'], 'protocol' | 'model'>,
  { answer, parsed, waitedMs, seat, read }: Answered & { waitedMs: number; seat: RoutedModel; read: Message[] },
): Promise<IncidentEvent<'model_answered'>> {
  const cost = await costOfAnswer(db, [model, answer.model], answer.usage)
  return await db.transaction().execute(async (trx) => {
    const text = parsed.kind === 'correction' ? answer.content : parsed.text
    const long = Buffer.byteLength(text) > contentLimit
    const calls = parsed.kind === 'calls' ? parsed.calls : []
    const { event } = await append(trx, turn.incidentId, turn.attempt, {
      kind: 'model_answered',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'model_answered', 0),
      detail: detailOf(parsed),
      metadata: {
        content: long ? text.slice(0, contentLimit / 4).toWellFormed() : text,
        body: long ? await storeBody(trx, text) : null,
        calls: calls.map((call, index) => ({
          id: callId(turn.turn, index),
          tool: call.tool,
          arguments: call.arguments,
          problem: call.problem,
          // The row keeps the arguments without the secret; that there was one is what the judge must know.
          ...(isSecretive(call.arguments) && { secret: true }),
        })),
        final:
          parsed.kind === 'final' ? { text: parsed.text, confidence: parsed.confidence, claims: parsed.claims } : null,
        problem: parsed.kind === 'correction' ? { code: parsed.code, text: parsed.text } : null,
        usage: answer.usage,
        model: answer.model,

        server: seat.served.server,
        route: seat.name,
        finishReason: `${protocol}:${answer.finishReason}`,
        durationMs: answer.durationMs,
        cost,
        ...(waitedMs >= 1_000 && { waitedMs }),
        ...(read.length > 0 && { read: read.map(({ seq }) => seq) }),
      },
    })
    await recordSpend(trx, turn.incidentId, { model: answer.model, cost })
    return event
  })
}

function detailOf(parsed: ParsedAnswer): string {
  if (parsed.kind === 'correction') return `The model's answer could not be used: ${parsed.code}`
  if (parsed.kind === 'final') return parsed.text.slice(0, 500)
  const names = parsed.calls.map((call) => (tools.has(call.tool) ? call.tool : 'an unknown tool')).join(', ')
  return parsed.text.trim() ? `${parsed.text.trim().slice(0, 400)} → ${names}` : `Proposes ${names}`
}
