import { activityInfo, cancellationSignal } from '@temporalio/activity'
import { CancelledFailure } from '@temporalio/common'
import type { ModelClient } from '../clients/model.ts'
import { ModelError } from '../clients/model-error.ts'
import { append, StaleRunError } from '../db/append.ts'
import { bodyText, inlineLimitBytes, storeBody } from '../db/bodies.ts'
import type { Db } from '../db/connect.ts'
import { eventByStepKey, eventsOf } from '../db/events.ts'
import type { ChatAnswer, ChatMessage, ChatTool } from '../domain/chat.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { type ParsedAnswer, parseAnswer } from '../model/protocol.ts'
import { bodiesThatFit, conversation, renderMessages } from '../model/transcript.ts'
import { renderContext, renderHint } from '../prompts/render.ts'
import { type Budgets, nearBudget, spentBudget } from '../safety/budget.ts'
import { fold } from '../safety/fold.ts'
import { isSecretive } from '../safety/redact.ts'
import { tools } from '../tools/registry.ts'
import type { Thought } from '../workflows/outcome.ts'
import { conclude } from './conclude.ts'
import { GiveUp, RetryLater } from './failure.ts'
import { beating } from './heartbeat.ts'
import { assertOwnRun } from './own-run.ts'
import { callId, stepKey, type Turn } from './step-key.ts'

type ThinkDeps = {
  db: Db
  model: ModelClient
  temperature: number
  maxTokens: number
  contextTokens: number
}

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
      return await beating(async () => {
        try {
          if ((await assertOwnRun(db, turn)) === 'closed') return { kind: 'closed' }
          const stored = await eventByStepKey(db, stepKey(turn, turn.turn, 'model_answered', 0))
          if (stored?.kind === 'model_answered') return await conclude(db, turn, stored)
          const events = await eventsOf(db, turn.incidentId)
          const state = fold(events, turn.attempt)
          const opening = contextOf(events, turn.attempt)
          const budgets = budgetsOf(events, turn.attempt, opening)
          // The loop counts turns; a run that something else drives is held to the limit here.
          if (turn.turn > budgets.turns) throw new GiveUp('TURN_LIMIT')
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
        }
      })
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
        final:
          parsed.kind === 'final' ? { text: parsed.text, confidence: parsed.confidence, claims: parsed.claims } : null,
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
