import { activityInfo, cancellationSignal } from '@temporalio/activity'
import { CancelledFailure } from '@temporalio/common'
import type { ModelClient } from '../clients/model.ts'
import { ModelError } from '../clients/model-error.ts'
import { append, StaleRunError } from '../db/append.ts'
import { bodyText, inlineLimitBytes, storeBody } from '../db/bodies.ts'
import type { Db, Trx } from '../db/connect.ts'
import { eventByStepKey, eventsOf } from '../db/events.ts'
import { closeIncident, incidentById } from '../db/incidents.ts'
import type { ChatAnswer, ChatMessage, ChatTool } from '../domain/chat.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { type ParsedAnswer, parseAnswer } from '../model/protocol.ts'
import { bodiesThatFit, conversation, renderMessages } from '../model/transcript.ts'
import { renderContext, renderHint } from '../prompts/render.ts'
import { type Budgets, nearBudget, spentBudget } from '../safety/budget.ts'
import { fold, type State } from '../safety/fold.ts'
import { phantomOf } from '../safety/phantom.ts'
import { isSecretive } from '../safety/redact.ts'
import { tools } from '../tools/registry.ts'
import type { Thought } from '../workflows/outcome.ts'
import { GiveUp, RetryLater } from './failure.ts'
import { startHeartbeat } from './heartbeat.ts'
import { assertOwnRun } from './own-run.ts'
import { callId, type Run, stepKey } from './step-key.ts'

export type ThinkDeps = {
  db: Db
  model: ModelClient
  temperature: number
  maxTokens: number
  contextTokens: number
}

export type Turn = Run & { turn: number }

const callsPerTurn = 8
/** A cautious guess where no tokenizer is at hand: dense JSON has about 3 characters a token. */
const charactersPerToken = 3

export function thinkActivities(deps: ThinkDeps) {
  const { db } = deps
  return {
    /**
     * One turn of the model: asks, parses, and writes what was answered. The first `model_answered` row wins: a retry after a
     * crash finds it and pays for nothing twice. Answers closed words; throws RetryLater while the model may come back.
     */
    async think(turn: Turn): Promise<Thought> {
      const signal = cancellationSignal()
      const stopHeartbeat = startHeartbeat()
      try {
        if ((await assertOwnRun(db, turn)) === 'closed') return { kind: 'closed' }
        const stored = await eventByStepKey(db, stepKey(turn, turn.turn, 'model_answered', 0))
        if (stored?.kind === 'model_answered') return await conclude(db, turn, stored)
        const events = await eventsOf(db, turn.incidentId)
        const state = fold(events, turn.attempt)
        const opening = contextOf(events, turn.attempt)
        const budgets = budgetsOf(events, turn.attempt, opening)
        const spent = spentBudget(state, budgets)
        if (spent) return { kind: 'over_budget', budget: spent }
        const warning = nearBudget(state, turn.turn, budgets)
        const told = warning ? [...events, await warn(db, turn, warning)] : events
        const answer = await ask(deps, turn, told, opening, signal)
        const answered = await write(db, turn, opening.protocol, answer)
        return await conclude(db, turn, answered)
      } catch (error) {
        if (error instanceof StaleRunError) return { kind: 'fenced' }
        throw error
      } finally {
        stopHeartbeat()
      }
    },
  }
}

export type ThinkActivities = ReturnType<typeof thinkActivities>

function contextOf(events: readonly IncidentEvent[], attempt: number): EventMetadata['context_assembled'] {
  const row = events.find((event) => event.kind === 'context_assembled' && event.attempt === attempt)
  if (row?.kind !== 'context_assembled') throw new GiveUp('CONTEXT_MISSING')
  return row.metadata
}

function budgetsOf(
  events: readonly IncidentEvent[],
  attempt: number,
  opening: EventMetadata['context_assembled'],
): Budgets {
  const claimed = events.find((event) => event.kind === 'claimed' && event.attempt === attempt)
  const seconds = claimed?.kind === 'claimed' ? claimed.metadata.config['agent.time_budget']?.value : null
  return {
    turns: opening.maxTurns,
    tokens: opening.tokenBudget,
    seconds: typeof seconds === 'number' ? seconds : Number.POSITIVE_INFINITY,
  }
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

type Answered = { answer: ChatAnswer; parsed: ParsedAnswer }

async function ask(
  deps: ThinkDeps,
  turn: Turn,
  events: readonly IncidentEvent[],
  opening: EventMetadata['context_assembled'],
  signal: AbortSignal,
): Promise<Answered> {
  const { db, model } = deps
  const tools = JSON.parse(await bodyText(db, opening.tools.digest)) as ChatTool[]
  const messages = await messagesFor(deps, turn, events, opening, JSON.stringify(tools).length)
  try {
    const answer = await model.complete({
      messages,
      ...(tools.length > 0 ? { tools } : {}),
      temperature: deps.temperature,
      maxTokens: deps.maxTokens,
      model: opening.model,
      signal,
      // With the try in it: a server that replays by key must not repeat an answer that could not be used.
      idempotencyKey: stepKey(turn, turn.turn, 'model_answered', 0, activityInfo().attempt),
    })
    return { answer, parsed: parseAnswer(opening.protocol, answer, { maxCalls: callsPerTurn }) }
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    if (error.code === 'aborted') throw new CancelledFailure('CANCELLED')
    if (error.code === 'oversized') return oversized(opening.model)
    await recordFailure(db, turn, error)
    if (!error.retryable) throw new GiveUp(`MODEL_${error.code.toUpperCase()}`)
    throw new RetryLater(`MODEL_${error.code.toUpperCase()}`, error.retryAfterMs)
  }
}

/** An answer too large to read is an answer all the same: a row, and a correction that says so. */
function oversized(model: string): Answered {
  const answer: ChatAnswer = {
    content: '',
    toolCalls: [],
    finishReason: 'oversized',
    usage: { promptTokens: 0, completionTokens: 0 },
    model,
    durationMs: 0,
  }
  return {
    answer,
    parsed: { kind: 'correction', code: 'too_long', text: 'Your answer was too large to be read. Answer shorter.' },
  }
}

/** What goes to the model: the stored prompt, the context, and as much of the conversation as the window holds. */
async function messagesFor(
  deps: ThinkDeps,
  turn: Turn,
  events: readonly IncidentEvent[],
  opening: EventMetadata['context_assembled'],
  toolsLength: number,
): Promise<ChatMessage[]> {
  const { db } = deps
  const context = JSON.parse(await bodyText(db, opening.context.digest)) as { hint: string | null }
  const { hint, ...known } = context
  const first: ChatMessage[] = [
    { role: 'system', content: await bodyText(db, opening.prompt.digest) },
    { role: 'user', content: renderContext({ ...known, hint: null }) },
  ]
  if (hint !== null) first.push({ role: 'user', content: renderHint(hint) })
  const used = toolsLength + first.reduce((sum, message) => sum + (message.content?.length ?? 0), 0)
  const budget = Math.max(4_000, (deps.contextTokens - deps.maxTokens) * charactersPerToken - used)

  const entries = conversation(events, turn.attempt)
  const bodies = new Map<string, string>()
  for (const digest of bodiesThatFit(entries, budget)) bodies.set(digest, await bodyText(db, digest))
  return renderMessages(opening.protocol, first, entries, bodies, budget)
}

async function recordFailure(db: Db, turn: Turn, error: ModelError): Promise<void> {
  const { attempt } = activityInfo()
  await db.transaction().execute(async (trx) => {
    await append(trx, turn.incidentId, turn.attempt, {
      kind: 'model_failed',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'model_failed', 0, attempt),
      detail: error.message,
      metadata: { code: error.code, status: error.status, activityAttempt: attempt, retryAfterMs: error.retryAfterMs },
    })
  })
}

const contentLimit = inlineLimitBytes

async function write(
  db: Db,
  turn: Turn,
  protocol: 'native' | 'json',
  { answer, parsed }: Answered,
): Promise<IncidentEvent<'model_answered'>> {
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
        final: parsed.kind === 'final' ? { text: parsed.text, confidence: parsed.confidence } : null,
        problem: parsed.kind === 'correction' ? { code: parsed.code, text: parsed.text } : null,
        usage: answer.usage,
        model: answer.model,
        finishReason: `${protocol}:${answer.finishReason}`,
        durationMs: answer.durationMs,
      },
    })
    return event
  })
}

function detailOf(parsed: ParsedAnswer): string {
  if (parsed.kind === 'correction') return `The model's answer could not be used: ${parsed.code}`
  if (parsed.kind === 'final') return parsed.text.slice(0, 500)
  const names = parsed.calls.map((call) => (tools.has(call.tool) ? call.tool : 'an unknown tool')).join(', ')
  return parsed.text.trim() ? `${parsed.text.trim().slice(0, 400)} → ${names}` : `Proposes ${names}`
}

/** What follows from a committed answer. Every row it writes has its step key, so concluding twice is concluding once. */
async function conclude(db: Db, turn: Turn, answered: IncidentEvent<'model_answered'>): Promise<Thought> {
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
  final: { text: string; confidence: 'high' | 'medium' | 'low' | null },
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
  const phantom = phantomOf(final.text, { writes: state.writes.length, reads: state.reads })
  if (incident?.type === 'question' && !state.open && (!phantom || state.corrected.has('phantom_claim'))) {
    await closeIncident(
      trx,
      turn.incidentId,
      turn.attempt,
      { status: 'resolved', outcome: 'no_fault', resolution: final.text, claims: [], confidence: final.confidence },
      { actor: agentActor, turn: turn.turn, stepKey: stepKey(turn, turn.turn, 'resolved', 0) },
    )
    return { kind: 'closed' }
  }
  const corrected = await eventByStepKey(trx, stepKey(turn, turn.turn, 'correction_sent', 0))
  if (!inserted && corrected) return { kind: 'correction' }
  if (state.corrected.has('prose_without_proof') || state.corrected.has('phantom_claim')) return { kind: 'unproven' }
  await correct(trx, turn, proseCorrection(final.text, state))
  return { kind: 'correction' }
}

/** What is wrong with ending in prose; claims of what no row shows are named, and counted, as such (seed 001, section 8). */
function proseCorrection(text: string, state: State): { code: string; text: string } {
  const phantom = phantomOf(text, { writes: state.writes.length, reads: state.reads })
  if (phantom) {
    return {
      code: 'phantom_claim',
      text: `No row shows what you claim (${phantom.category}). Nothing was run by your text. Call tools, and cite their results.`,
    }
  }
  return {
    code: 'prose_without_proof',
    text: state.open
      ? 'A write is not verified yet. Read its target, then call resolve_incident with evidence, or escalate_incident.'
      : 'Prose resolves nothing. Call resolve_incident with claims that cite meta.seq of results, or escalate_incident.',
  }
}
