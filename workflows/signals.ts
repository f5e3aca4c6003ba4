import { CancellationScope, patched, setHandler } from '@temporalio/workflow'
import {
  alertResolved,
  approve,
  boundMessage,
  cancelInvestigation,
  type DecideAnswer,
  type DecideMessage,
  type DecisionMessage,
  decide,
  decided,
  deny,
  type Interruption,
  parseDecision,
  pendingApproval,
} from './outcome.ts'
import { type RunState, rows } from './run.ts'

/**
 * Name of the patch of 0.2. Since 0.2, the model may finish its answer when the alerts end, and the
 * run checks before the first call whether the call is still wanted.
 */
const thinkOn = 'think-on'

/** Most decisions that a run of version 0.1.0 handled. */
const decisionsPerRun = 200
/** Most stop signals that are checked during a model's answer; the next step checks the others. */
const stopChecksPerRun = 20

/**
 * Whether a model may finish its answer after the alerts ended. Asks Temporal (`patched`) only for
 * runs that are not guarded.
 */
export function finishesAnswers(run: RunState): boolean {
  return run.isGuarded || patched(thinkOn)
}

/**
 * Handles Temporal's messages: decisions by Update and Signal, wakes, an alert's end, a stop
 * request. Anybody with write access to Temporal can send these, so each message is only a reason
 * to read the row. Handlers run in the run's root scope: without `nonCancellable`, the cancellation
 * of a run would interrupt a decision.
 */
export function listen(run: RunState): void {
  const whileAdmitted = (act: () => void) => () => {
    if (!run.isGuarded || run.decisions.admitSignal()) act()
  }
  setHandler(decide, (message) => applyUpdate(run, message), {
    description: 'Approve or deny what this incident waits for, with a decision token',
    validator: (message) => {
      if (message?.decision !== 'approve' && message?.decision !== 'deny')
        throw new Error('decision must be approve or deny')
      if (typeof message.token !== 'string' || message.token.length > 200)
        throw new Error('token must be a decision token')
    },
  })
  setHandler(approve, (sent) => applySignal(run, sent, 'approve'))
  setHandler(deny, (sent) => applySignal(run, sent, 'deny'))
  setHandler(
    decided,
    whileAdmitted(() => {
      run.wakes += 1
    }),
  )
  setHandler(
    alertResolved,
    whileAdmitted(() => interrupt(run, 'alert_resolved')),
  )
  setHandler(
    cancelInvestigation,
    whileAdmitted(() => interrupt(run, 'cancel')),
  )
  setHandler(pendingApproval, () => run.pending)
  CancellationScope.current().cancelRequested.catch(() => interrupt(run, 'stopped'))
}

async function applyUpdate(run: RunState, message: DecideMessage): Promise<DecideAnswer> {
  if (!run.isGuarded) return await applyUnguarded(run, message, 'update')
  if (!run.decisions.admitSignal()) return tooMany
  return await run.decisions.weigh(parseDecision('update', message, message.decision))
}

/**
 * Handles a signal and never throws: a signal has no answer, and a failing handler would fail the
 * run.
 */
async function applySignal(run: RunState, sent: DecisionMessage, decision: 'approve' | 'deny'): Promise<void> {
  try {
    if (!run.isGuarded) await applyUnguarded(run, { ...sent, decision }, 'signal')
    else if (run.decisions.admitSignal()) await run.decisions.weigh(parseDecision('signal', sent, decision))
  } catch {
    // Ignores the failure, because the row of the approval is unchanged and is read later.
  }
}

/** Handles each decision alone, in a run of version 0.1.0. */
async function applyUnguarded(run: RunState, message: DecideMessage, via: 'signal' | 'update'): Promise<DecideAnswer> {
  run.unguardedDecisions += 1
  if (run.unguardedDecisions > decisionsPerRun) return tooMany
  const input = { ...boundMessage(message), via }
  const answer = await CancellationScope.nonCancellable(() => rows.decide(run.input.incidentId, input))
  run.wakes += 1
  return answer
}

const tooMany: DecideAnswer = { outcome: 'refused', status: null, message: 'too many decisions in one run' }

function interrupt(run: RunState, why: Interruption): void {
  run.interruptions.add(why)
  run.wakes += 1
  // Lets a running answer finish, because it is paid for. Only a stop ends the answer, and a stop
  // signal only if a row shows a person's request.
  if (why === 'cancel' && run.isGuarded) void stopThinking(run)
  else if (why !== 'alert_resolved' || !finishesAnswers(run)) run.thinking?.cancel()
}

/**
 * Cancels the model's answer if a person wants the run to stop. Only one check runs at a time.
 * Signals during a check cause one more check.
 */
async function stopThinking(run: RunState): Promise<void> {
  const { stop } = run
  const { incidentId, attempt } = run.input
  stop.isAsked = true
  if (stop.isLooking) return
  stop.isLooking = true
  try {
    while (stop.isAsked && run.thinking && stop.checks < stopChecksPerRun) {
      stop.isAsked = false
      stop.checks += 1
      const isWanted = await CancellationScope.nonCancellable(() => rows.isStopWanted(incidentId, attempt))
      if (isWanted) run.thinking?.cancel()
    }
  } catch {
    // Ignores the failure, because the next step checks for a stop again.
  } finally {
    stop.isLooking = false
  }
}
