import { activityInfo, cancellationSignal } from '@temporalio/activity'
import type { Db } from '../db/connect.ts'
import { append, StaleRunError } from '../db/log/append.ts'
import { inlineLimitBytes, storeBody } from '../db/log/bodies.ts'
import { eventByStepKey, eventsOf } from '../db/log/events.ts'
import { costOfAnswer, recordSpend, spentCap } from '../db/models/spend.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../domain/event.ts'
import { findManualChange } from '../domain/manual-change.ts'
import { type PersonMessage, unreadOf } from '../domain/message.ts'
import { callId, type RunRef, stepKey, type TurnRef } from '../domain/step-key.ts'
import { readToolName } from '../domain/tool-name.ts'
import type { ParsedAnswer } from '../model/protocol.ts'
import { readCall } from '../model/read-call.ts'
import { fold } from '../safety/fold.ts'
import { isSecretive } from '../safety/redact.ts'
import { budgetsOf, nearBudget, spentBudget } from '../safety/ruling.ts'
import { tools } from '../tools/registry.ts'
import type { SlotWait, TurnOutcome } from '../workflows/outcome.ts'
import { type AskDeps, askModel, type ParsedReply } from './ask-model.ts'
import { type ModelRoutes, modelFor, type RoutedModel } from './choose-model.ts'
import { conclude } from './conclude.ts'
import { NonRetryable, RetryLater } from './failures.ts'
import { withHeartbeat } from './heartbeat.ts'
import { takeManualTurn } from './manual-change.ts'
import { leaveQueue, type Slots, type SlotTurn, waitForSlot, withSlot } from './model-slots.ts'
import { assertOwnRun } from './own-run.ts'

/**
 * `slots`: limit of parallel requests per model server, over all workers; if absent, no run waits.
 */
type ThinkDeps = Omit<AskDeps, 'model' | 'served'> & {
  models: ModelRoutes
  slots?: Omit<Slots, 'server'>
}

/** Milliseconds for which an attempt that may not return `waiting` waits for a slot itself. */
const ownWaitMs = 60_000

export function thinkActivities(deps: ThinkDeps) {
  const { db, slots } = deps
  /** Chooses the model that the run asks next, from its rows. */
  const chosen = async (run: RunRef, turn: number, events: readonly IncidentEvent[]) => {
    return await modelFor(db, deps.models, { ...run, turn }, events, contextOf(events, run.attempt))
  }
  return {
    /**
     * Takes one turn of the model: asks, parses, and writes the answer. The first `model_answered`
     * row wins, so that a retry after a crash finds it and pays nothing twice. Returns the kind of
     * the outcome, without the model's text. Throws RetryLater while the model may come back. With
     * `mayWait`, returns `waiting` if all slots are taken: the run has a place in the queue, and
     * must call `awaitSlot`.
     */
    async think({ mayWait = false, ...turn }: TurnRef & { mayWait?: boolean }): Promise<TurnOutcome> {
      const signal = cancellationSignal()
      return await withHeartbeat(async () => {
        try {
          if ((await assertOwnRun(db, turn)) === 'closed') return { kind: 'closed' }
          const stored = await eventByStepKey(db, stepKey(turn, turn.turn, 'model_answered', 0), 'model_answered')
          if (stored) return await conclude(db, turn, stored)
          const events = await eventsOf(db, turn.incidentId)
          const manual = findManualChange(events, turn.attempt)
          if (manual) return await takeManualTurn(db, turn, manual, events)
          const state = fold(events, turn.attempt)
          const opening = contextOf(events, turn.attempt)
          const budgets = budgetsOf(events, turn.attempt, opening)
          // Limits the turns of a run that does not run in `runLoop`, which counts its turns
          // itself.
          if (turn.turn - state.corrections > budgets.turns) throw new NonRetryable('TURN_LIMIT')
          const spent = spentBudget(state, budgets)
          if (spent) return { kind: 'over_budget', budget: spent }
          if (await spentCap(db)) return { kind: 'over_budget', budget: 'money' }
          const warning = nearBudget(state, turn.turn, budgets)
          const told = warning ? [...events, await warn(db, turn, warning)] : events
          const model = await chosen(turn, turn.turn, told)
          const seat: AskDeps = {
            ...deps,
            model: model.client,
            served: model.served,
            route: model.name,
            hasFallback: model.fallbacks.length > 0,
          }
          const known = { ...opening, model: model.model }
          const asked = await askInSlot(db, slotsOf(slots, model), turn, mayWait, async (waitedMs, lost) => {
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

    /**
     * Waits in the queue for the model, for a third of the time that the workflow allows. `ready`:
     * a slot is kept for the run until it asks. If there are fallbacks, chooses the model again ten
     * times, because the awaited server may fail meanwhile.
     */
    async awaitSlot(run: RunRef): Promise<SlotWait> {
      const waitMs = activityInfo().startToCloseTimeoutMs / 3
      const until = performance.now() + waitMs
      for (;;) {
        if (!slots) return { kind: 'ready' }
        if ((await assertOwnRun(db, run)) === 'closed') {
          await leaveQueue(db, run)
          return { kind: 'ready' }
        }
        const events = await eventsOf(db, run.incidentId)
        const turns = events.filter(({ kind, attempt }) => kind === 'model_answered' && attempt === run.attempt).length
        const { served } = await chosen(run, turns + 1, events)
        const forMs = deps.models.length > 1 ? waitMs / 10 : waitMs
        const slot = await waitForSlot(db, { ...slots, server: served.server }, run, forMs, cancellationSignal())
        // Checks again, because the end of a run ends its wait only at a later heartbeat.
        if (slot.held && (await assertOwnRun(db, run)) === 'working') return { kind: 'ready' }
        if (!slot.held && performance.now() > until) return { kind: 'waiting', ahead: slot.ahead }
      }
    },
  }
}

function slotsOf(slots: ThinkDeps['slots'], { served }: RoutedModel): Slots | undefined {
  return slots && { ...slots, server: served.server }
}

type Ask<T> = (waitedMs: number, lost: AbortSignal) => Promise<T>

/**
 * Asks the model with a slot. If no slot is free, the workflow waits without a time limit. But an
 * attempt after a failure waits within the activity's own time, because otherwise an unreachable
 * model would be asked for ever.
 */
async function askInSlot<T>(
  db: Db,
  slots: Slots | undefined,
  turn: TurnRef,
  mayWait: boolean,
  ask: Ask<T>,
): Promise<SlotTurn<T>> {
  if (!slots) return { taken: true, value: await ask(0, new AbortController().signal) }
  const asked = await withSlot(db, slots, turn, ask, cancellationSignal())
  if (asked.taken || (mayWait && activityInfo().attempt === 1)) return asked
  await waitForSlot(db, slots, turn, ownWaitMs, cancellationSignal())
  // Ends this attempt. The next attempt finds its slot kept and has all of its time for the answer.
  throw new RetryLater('MODEL_BUSY', 1)
}

export type ThinkActivities = ReturnType<typeof thinkActivities>

function contextOf(events: readonly IncidentEvent[], attempt: number): EventMetadata['context_assembled'] {
  const row = events.find((event) => event.kind === 'context_assembled' && event.attempt === attempt)
  if (row?.kind !== 'context_assembled') throw new NonRetryable('CONTEXT_MISSING')
  return row.metadata
}

/** Warns the model that a limit is near, and records the warning in a row. */
async function warn(db: Db, turn: TurnRef, warning: { code: string; text: string }): Promise<IncidentEvent> {
  return await db.transaction().execute(async (trx) => {
    const { event } = await append(trx, turn.incidentId, turn.attempt, {
      kind: 'correction_sent',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'correction_sent', 0, 1),
      detail: `Warned the model that a limit is near: ${warning.code}`,
      metadata: warning,
    })
    return event
  })
}

const maxContentBytes = inlineLimitBytes

async function write(
  db: Db,
  turn: TurnRef,
  { model }: Pick<EventMetadata['context_assembled'], 'model'>,
  {
    answer,
    parsed,
    protocol: by,
    waitedMs,
    seat,
    read,
  }: ParsedReply & { waitedMs: number; seat: RoutedModel; read: PersonMessage[] },
): Promise<IncidentEvent<'model_answered'>> {
  const cost = await costOfAnswer(db, [model, answer.model], answer.usage)
  return await db.transaction().execute(async (trx) => {
    const text = parsed.kind === 'correction' ? answer.content : parsed.text
    const long = Buffer.byteLength(text) > maxContentBytes
    const calls = parsed.kind === 'calls' ? parsed.calls : []
    const { event } = await append(trx, turn.incidentId, turn.attempt, {
      kind: 'model_answered',
      actor: agentActor,
      turn: turn.turn,
      stepKey: stepKey(turn, turn.turn, 'model_answered', 0),
      detail: detailOf(parsed),
      metadata: {
        content: long ? text.slice(0, maxContentBytes / 4).toWellFormed() : text,
        body: long ? await storeBody(trx, text) : null,
        calls: calls.map((call, index) => ({
          id: callId(turn.turn, index),
          ...readCall(call, tools),
          problem: call.problem,
          // Marks a call whose arguments had a secret. The row has the arguments without the
          // secret, and the judge must know that there was one.
          ...(isSecretive(call.arguments) && { secret: true }),
        })),
        final:
          parsed.kind === 'final' ? { text: parsed.text, confidence: parsed.confidence, claims: parsed.claims } : null,
        problem: parsed.kind === 'correction' ? { code: parsed.code, text: parsed.text } : null,
        usage: answer.usage,
        model: answer.model,
        server: seat.served.server,
        route: seat.name,
        finishReason: `${by}:${answer.finishReason}`,
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
  const names = parsed.calls
    .map(({ tool }) => readToolName(tool, (name) => tools.has(name)) ?? 'an unknown tool')
    .join(', ')
  return parsed.text.trim() ? `${parsed.text.trim().slice(0, 400)} → ${names}` : `Proposes ${names}`
}
