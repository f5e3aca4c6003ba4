import type { CallOutcome, DecisionStatus, EscalationCode, LoopEnd, TurnOutcome } from './outcome.ts'

/**
 * Ports of the turn loop, so that the workflow, the simulator and tests run the same loop. The loop
 * has the order of steps and the limits; the loop has no policy, text or clock.
 */
export type LoopPorts = {
  think(turn: number): Promise<TurnOutcome>
  /** Waits until the model may be asked, or its queue must be read again. Uses no budget. */
  waitForModel(turn: number, ahead: number): Promise<void>
  /** Judges and runs one call. With an approval, reads the targets and judges the call again. */
  act(turn: number, call: number, tool: string, approvalId: string | null): Promise<CallOutcome>
  /** Waits until a write's effect is visible, or is clearly missing. */
  verify(turn: number, call: number): Promise<CallOutcome>
  /** Returns when the approval is decided, or `interrupted` if the run ends for another reason. */
  waitForDecision(approvalId: string, expiresInMs: number): Promise<DecisionStatus | 'interrupted'>
  /**
   * Waits before an ending is judged again that came too early. A person may end the run meanwhile.
   */
  pause(waitMs: number): Promise<'over' | 'interrupted'>
  /**
   * Called between two steps. Returns true if the run has ended, because a person stopped it,
   * because it was cancelled in Temporal, or because its alerts ended.
   */
  interrupted(turn: number): Promise<boolean>
  /**
   * Returns false if the run has ended. Called between a model's answer and its first call, because
   * alerts or people may have ended the run during the answer.
   */
  isStillWanted(turn: number): Promise<boolean>
  /**
   * Called after each turn with the state that a next run needs: the workflow may continue as new.
   */
  checkpoint(progress: LoopProgress): Promise<void>
  now(): number
}

export type LoopLimits = {
  maxTurns: number
  timeBudgetMs: number
  /** Whether an unusable answer uses no turn. Absent in runs of version 0.1.0. */
  correctionsAreFree?: boolean
}

/** State of the loop between turns. */
export type LoopProgress = { turn: number; workedMs: number; corrections: number; correctionsInARow: number }

export const freshProgress: LoopProgress = { turn: 0, workedMs: 0, corrections: 0, correctionsInARow: 0 }

const maxCorrectionsInARow = 2
const maxCorrections = 5
/**
 * Most approvals that are requested for one call. After so many, the platform changes faster than
 * people decide.
 */
const asksPerCall = 5

const budgetCodes = { tokens: 'TOKEN_BUDGET', bytes: 'BYTE_BUDGET', money: 'MONEY_BUDGET' } as const

/**
 * Takes turns until the incident is closed or a limit needs a person. Never throws because of what
 * a port returns.
 */
export async function runLoop(
  ports: LoopPorts,
  limits: LoopLimits,
  resume: LoopProgress = freshProgress,
): Promise<LoopEnd> {
  const progress = { ...resume }
  const escalate = (code: EscalationCode): LoopEnd => ({ end: 'escalate', code, turn: progress.turn })

  while (progress.turn < limits.maxTurns + (limits.correctionsAreFree ? progress.corrections : 0)) {
    if (await ports.interrupted(progress.turn)) return { end: 'closed' }
    if (progress.workedMs >= limits.timeBudgetMs) return escalate('TIME_BUDGET')
    progress.turn += 1

    const startedAt = ports.now()
    const thought = await ports.think(progress.turn)
    if (thought.kind !== 'waiting') progress.workedMs += ports.now() - startedAt

    switch (thought.kind) {
      case 'calls': {
        progress.correctionsInARow = 0
        const end = await runCalls(ports, progress, thought.calls, escalate)
        if (end) return end
        break
      }
      case 'correction':
        progress.corrections += 1
        progress.correctionsInARow += 1
        if (progress.correctionsInARow > maxCorrectionsInARow || progress.corrections > maxCorrections) {
          return escalate('CORRECTION_LIMIT')
        }
        break
      case 'closed':
        return { end: 'closed' }
      case 'fenced':
        return { end: 'fenced' }
      case 'unproven':
        return escalate('UNPROVEN_ANSWER')
      case 'over_budget':
        return escalate(budgetCodes[thought.budget ?? 'tokens'] ?? 'TOKEN_BUDGET')
      case 'interrupted':
        // Repeats the turn unless the run has ended, because the model's answer was interrupted.
        progress.turn -= 1
        continue
      case 'waiting':
        await ports.waitForModel(progress.turn, thought.ahead)
        progress.turn -= 1
        break
      case 'failed':
        return escalate('MODEL_UNAVAILABLE')
      default:
        return escalate('UNKNOWN_OUTCOME')
    }
    await ports.checkpoint(progress)
  }
  return escalate('TURN_LIMIT')
}

/** Runs the calls of one answer in order, because a read may enable the call after it. */
async function runCalls(
  ports: LoopPorts,
  progress: LoopProgress,
  calls: string[],
  escalate: (code: EscalationCode) => LoopEnd,
): Promise<LoopEnd | null> {
  for (const [index, tool] of calls.entries()) {
    const isWanted = index === 0 ? await ports.isStillWanted(progress.turn) : !(await ports.interrupted(progress.turn))
    if (!isWanted) return { end: 'closed' }
    const end = await runCall(ports, progress, index, tool, escalate)
    if (end) return end
  }
  return null
}

async function runCall(
  ports: LoopPorts,
  progress: LoopProgress,
  call: number,
  tool: string,
  escalate: (code: EscalationCode) => LoopEnd,
): Promise<LoopEnd | null> {
  let approvalId: string | null = null
  for (let asked = 0; asked <= asksPerCall; ) {
    const startedAt = ports.now()
    let outcome = await ports.act(progress.turn, call, tool, approvalId)
    if (outcome.kind === 'verify') outcome = await ports.verify(progress.turn, call)
    progress.workedMs += ports.now() - startedAt

    switch (outcome.kind) {
      case 'next':
        return null
      case 'closed':
        return { end: 'closed' }
      case 'fenced':
        return { end: 'fenced' }
      case 'indeterminate':
        return escalate('INDETERMINATE')
      case 'looping':
        return escalate('LOOP')
      case 'failed':
        return escalate('ACT_FAILED')
      case 'wait':
        // Waits without asking a person, and without using the time budget.
        if ((await ports.pause(outcome.waitMs)) === 'interrupted') return { end: 'closed' }
        break
      case 'ask': {
        asked += 1
        // Does not count the wait for a person against any budget.
        const decision = await ports.waitForDecision(outcome.approvalId, outcome.expiresInMs)
        if (decision === 'interrupted') return { end: 'closed' }
        if (decision === 'denied') return null
        if (decision === 'expired') return escalate('APPROVAL_EXPIRED')
        approvalId = decision === 'approved' ? outcome.approvalId : null
        break
      }
      default:
        return escalate('UNKNOWN_OUTCOME')
    }
  }
  return escalate('APPROVAL_LOOP')
}
