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
 * Since 0.2 an alert's end lets the model finish its answer, and the run asks before the first call
 * if it is still wanted.
 */
const thinkOn = 'think-on'

/** What a run of version 0.1.0 weighed at most. */
const decisionsPerRun = 200
/** Signals to stop that are looked into during the model's thought; later ones wait. */
const stopChecksPerRun = 20

/**
 * Whether a model's answer outlives the alerts' end. Asks Temporal only where the run's version
 * leaves it open.
 */
export function finishesAnswers(run: RunState): boolean {
  return run.isGuarded || patched(thinkOn)
}

/**
 * Listens to Temporal: decisions by Update and Signal, wakes, an alert's end, a request to stop.
 * Anybody who can write to Temporal can send these, so each is only a reason to read the row.
 * Handlers run in the run's root scope: without `nonCancellable`, a decision that meets a cancelled
 * run would end it half-way.
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

/** A signal cannot be answered, and what fails in its handler would fail the run. */
async function applySignal(run: RunState, sent: DecisionMessage, decision: 'approve' | 'deny'): Promise<void> {
  try {
    if (!run.isGuarded) await applyUnguarded(run, { ...sent, decision }, 'signal')
    else if (run.decisions.admitSignal()) await run.decisions.weigh(parseDecision('signal', sent, decision))
  } catch {
    // The row is as it was; a later look reads it.
  }
}

/** How runs that began with version 0.1.0 weigh a decision: each by itself. */
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
  // An answer under way is paid for: only a stop gives it up, a signal only with a person.
  if (why === 'cancel' && run.isGuarded) void stopThinking(run)
  else if (why !== 'alert_resolved' || !finishesAnswers(run)) run.thinking?.cancel()
}

/**
 * Gives up the model's answer where a person wants the run to stop. One look at a time, and one
 * more for what came meanwhile.
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
    // The next step looks again.
  } finally {
    stop.isLooking = false
  }
}
