import { ActivityFailure, ApplicationFailure } from '@temporalio/common'
import { allHandlersFinished, CancellationScope, condition, patched, setCurrentDetails } from '@temporalio/workflow'
import { freshProgress, type LoopLimits, type LoopProgress, runLoop } from './loop.ts'
import type { LoopEnd } from './outcome.ts'
import {
  context,
  createDecisionQueue,
  createInterruptions,
  type InvestigationInput,
  type RunState,
  rows,
  showInTemporal,
} from './run.ts'
import { listen } from './signals.ts'
import { buildPorts, signalGroup } from './steps.ts'

export type { InvestigationInput }

/**
 * `how`: the ending as the run knows it, because the rows of a restored database may be older than
 * the ending. Version 0.1.0 did not return this field.
 */
export type InvestigationResult = {
  status: string
  headHash: string | null
  how: 'not_claimed' | 'fenced' | 'closed' | 'escalated'
}

const guardedSignals = 'guarded-signals'
/** Name of the patch of 0.2. Since 0.2, an answer that is returned for correction uses no turn. */
const freeCorrections = 'free-corrections'

/**
 * Makes one attempt at one incident: claims the incident, gathers the facts, then takes turns until
 * the incident is closed. Any ending except a resolution is an escalation. While a person decides,
 * the run is only a timer and a few handlers.
 */
export async function InvestigateIncident(input: InvestigationInput): Promise<InvestigationResult> {
  const run = createRun(input)
  listen(run)
  return await CancellationScope.nonCancellable(async () => {
    const started = input.resume ?? (await start(run))
    if ('status' in started) return started
    const { progress, ...limits } = started
    try {
      const end = await runLoop(buildPorts(run, limits), limits, progress)
      if (end.end === 'fenced') return await finish(run, 'fenced')
      if (end.end === 'escalate') return await escalate(run, end)
      return await finish(run, 'closed')
    } catch (error) {
      if (isSuperseded(error)) return await finish(run, 'fenced')
      throw error
    }
  })
}

function createRun(input: InvestigationInput): RunState {
  const isGuarded = patched(guardedSignals)
  const { incidentId, attempt } = input
  const run: RunState = {
    input,
    isGuarded,
    interruptions: createInterruptions(isGuarded),
    decisions: createDecisionQueue(
      // Uses a non-cancellable scope, because the cancellation of a run must not interrupt a
      // decision.
      (batch) => CancellationScope.nonCancellable(() => rows.decideAll(incidentId, attempt, batch)),
      () => {
        run.wakes += 1
      },
    ),
    wakes: 0,
    seenWakes: 0,
    unguardedDecisions: 0,
    pending: null,
    thinking: null,
    stop: { isAsked: false, isLooking: false, checks: 0 },
  }
  return run
}

/** Claims the incident and gathers its context. Returns a result if no turn can follow. */
async function start(run: RunState): Promise<InvestigationResult | (LoopLimits & { progress: LoopProgress })> {
  const { input } = run
  const claimed = await rows.claim(input)
  if (!claimed) return await finish(run, 'not_claimed')
  const { type, severity, target } = claimed
  showInTemporal({ incidentType: type, severity, role: input.role, target, status: 'investigating' })
  await signalGroup(run, 'resumed')
  const limits = await context.assembleContext(input.incidentId, input.attempt).catch(() => null)
  if (!limits) return await escalate(run, { end: 'escalate', code: 'CONTEXT_FAILED', turn: 0 })
  return { ...limits, ...(patched(freeCorrections) && { correctionsAreFree: true }), progress: freshProgress }
}

async function escalate(run: RunState, end: Extract<LoopEnd, { end: 'escalate' }>): Promise<InvestigationResult> {
  const { incidentId, attempt } = run.input
  await rows.escalate.executeWithOptions({ summary: end.code }, [incidentId, attempt, end.code, end.turn])
  return await finish(run, 'escalated')
}

async function finish(run: RunState, how: InvestigationResult['how']): Promise<InvestigationResult> {
  await condition(allHandlersFinished)
  const closing = await rows.closing(run.input.incidentId)
  showInTemporal({ status: closing.status })
  setCurrentDetails(`${how}: ${closing.status}`)
  await signalGroup(run, 'ended')
  return { ...closing, how }
}

/** Whether an activity failed because this run no longer owns the incident. */
function isSuperseded(error: unknown): boolean {
  return (
    error instanceof ActivityFailure &&
    error.cause instanceof ApplicationFailure &&
    error.cause.type === 'StaleRunError'
  )
}
