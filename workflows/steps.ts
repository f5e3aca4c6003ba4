import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  isCancellation,
  setCurrentDetails,
  sleep,
  workflowInfo,
} from '@temporalio/workflow'
import type { InvestigateIncident } from './investigate.ts'
import type { LoopLimits, LoopPorts, LoopProgress } from './loop.ts'
import { type CallOutcome, type ChildReport, type DecisionStatus, report } from './outcome.ts'
import { awaitSlot, type RunState, rows, showInTemporal, think, world } from './run.ts'
import { finishesAnswers } from './signals.ts'

/** Milliseconds between reads of the row in a run that is over its signal limit. */
const pollMs = 30_000
/**
 * Number of checks for a stop that run directly after their signals. A pause of `betweenLooksMs`
 * precedes each later check.
 */
const promptLooks = 20
const betweenLooksMs = 1_000

/** Builds the ports of the turn loop, each an activity of this run or a wait for a signal. */
export function buildPorts(run: RunState, limits: LoopLimits): LoopPorts {
  const { incidentId, attempt } = run.input
  const show = (turn: number, what: string) => setCurrentDetails(`Turn ${turn} of ${limits.maxTurns}: ${what}`)
  return {
    now: () => Date.now(),
    think: async (turn) => {
      show(turn, 'the model is asked')
      try {
        return await whileThinking(run, () => think(incidentId, attempt, turn))
      } catch {
        return { kind: run.interruptions.isAny() ? 'interrupted' : 'failed' }
      }
    },
    waitForModel: async (turn, ahead) => {
      show(turn, `waits for the model, ${ahead} before it`)
      try {
        await whileThinking(run, () => awaitSlot(incidentId, attempt, turn))
      } catch {
        // Ignores a stop or a failed wait, because the loop then checks for interruptions.
      }
    },
    act: async (turn, call, tool, approvalId) => {
      show(turn, tool)
      const input = { incidentId, attempt, turn, call, approvalId }
      return await failWithoutThrowing(() =>
        world.act.executeWithOptions({ summary: `turn ${turn}: ${tool}` }, [input]),
      )
    },
    verify: async (turn, call) => {
      show(turn, 'verifying')
      const input = { incidentId, attempt, turn, call }
      return await failWithoutThrowing(() =>
        world.verify.executeWithOptions({ summary: `turn ${turn}: verify` }, [input]),
      )
    },
    waitForDecision: (approvalId, expiresInMs) => waitForDecision(run, approvalId, expiresInMs),
    pause: async (waitMs) => {
      setCurrentDetails(`The ending is kept for ${Math.ceil(waitMs / 1000)} s: the alerts must stay quiet`)
      return await waitForQuiet(run, waitMs)
    },
    interrupted: (turn) => endIfInterrupted(run, turn),
    isStillWanted: async (turn) => !finishesAnswers(run) || !(await endIfInterrupted(run, turn)),
    checkpoint: (progress) => continueAsNewIfSuggested(run, limits, progress),
  }
}

/** Runs a request to the model, or a wait for the model, so that a stop can cancel it. */
async function whileThinking<T>(run: RunState, ask: () => Promise<T>): Promise<T> {
  try {
    run.thinking = new CancellationScope()
    return await run.thinking.run(ask)
  } finally {
    run.thinking = null
  }
}

async function failWithoutThrowing(work: () => Promise<CallOutcome>): Promise<CallOutcome> {
  try {
    return await work()
  } catch (error) {
    if (isCancellation(error)) throw error
    return { kind: 'failed' }
  }
}

async function waitForDecision(
  run: RunState,
  approvalId: string,
  expiresInMs: number,
): Promise<DecisionStatus | 'interrupted'> {
  run.pending = { approvalId, since: Date.now() }
  setCurrentDetails(`Waiting for a person to decide ${approvalId}`)
  showInTemporal({ status: 'awaiting_approval' })
  await signalGroup(run, 'parked')
  const decision = await readDecisionWhenWoken(run, approvalId, expiresInMs)
  run.pending = null
  if (decision !== 'interrupted') {
    showInTemporal({ status: 'investigating' })
    await signalGroup(run, 'resumed')
  }
  return decision
}

/**
 * Sleeps until a signal or the expiry, and then reads the decision from the row, never from a
 * signal.
 */
async function readDecisionWhenWoken(
  run: RunState,
  approvalId: string,
  expiresInMs: number,
): Promise<DecisionStatus | 'interrupted'> {
  const { incidentId, attempt } = run.input
  let waitMs = expiresInMs
  for (let looks = 1; ; looks += 1) {
    // Counts a wake from before this wait too: at worst, the row is read once more than needed.
    await condition(() => run.wakes > run.seenWakes, run.decisions.isOverLimit() ? Math.min(waitMs, pollMs) : waitMs, {
      summary: 'a person decides',
    })
    await condition(allHandlersFinished)
    run.seenWakes = run.wakes
    if (await endIfInterrupted(run, 0)) return 'interrupted'
    const read = await rows.readDecision(incidentId, attempt, approvalId)
    if (read.status !== 'pending') return read.status
    waitMs = Math.max(250, read.remainingMs)
    if (run.isGuarded && looks >= promptLooks) await sleep(Math.min(betweenLooksMs, waitMs))
  }
}

/**
 * Waits while an ending is too early. Signals do not shorten the wait, unless the run has to end.
 */
async function waitForQuiet(run: RunState, waitMs: number): Promise<'over' | 'interrupted'> {
  const until = Date.now() + waitMs
  for (let looks = 1; ; looks += 1) {
    await condition(() => run.interruptions.isAny(), Math.max(1, until - Date.now()), {
      summary: 'the alerts stay quiet',
    })
    if (await endIfInterrupted(run, 0)) return 'interrupted'
    if (!run.isGuarded || Date.now() >= until) return 'over'
    if (looks >= promptLooks) await sleep(betweenLooksMs)
  }
}

/**
 * Checks the interruptions. Returns true if a row confirmed an interruption and the incident was
 * closed.
 */
async function endIfInterrupted(run: RunState, turn: number): Promise<boolean> {
  const { incidentId, attempt } = run.input
  if (run.decisions.isOverLimit()) {
    if (await rows.isStopWanted(incidentId, attempt)) run.interruptions.add('cancel')
    run.interruptions.add('alert_resolved')
  }
  // Repeats, because a person may stop the run during a check, and then no call may start.
  for (let why = run.interruptions.take(); why; why = run.interruptions.take()) {
    const hasEnded = await world.endEarly.executeWithOptions({ summary: why }, [{ incidentId, attempt, turn, why }])
    if (hasEnded) return true
  }
  return false
}

async function continueAsNewIfSuggested(run: RunState, limits: LoopLimits, progress: LoopProgress): Promise<void> {
  if (!workflowInfo().continueAsNewSuggested || run.interruptions.isAny()) return
  await condition(allHandlersFinished)
  // Does not continue as new if a message came while the handlers ended, because the message would
  // be lost with this run. The next turn checks the message.
  if (run.interruptions.isAny()) return
  await continueAsNew<typeof InvestigateIncident>({ ...run.input, resume: { progress, ...limits } })
}

/**
 * Signals the group. Ignores a failure, because a group that runs later reads the same from the
 * rows.
 */
export async function signalGroup(run: RunState, what: ChildReport): Promise<void> {
  try {
    await getExternalWorkflowHandle(run.input.group).signal(report, run.input.incidentId, what)
  } catch {
    // Ignores the failure, because the group has ended and waits for no report.
  }
}
