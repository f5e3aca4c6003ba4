import type { CallOutcome, DecisionStatus, EscalationCode, LoopEnd, TurnOutcome } from './outcome.ts'

/**
 * The turn loop, over ports, so that workflow, simulator and tests run the same. It holds order and
 * limits; no policy, text or clock.
 */
export type LoopPorts = {
  think(turn: number): Promise<TurnOutcome>
  /**
   * Waits until the model may be asked, or it is time to look again. No work of this run: it counts
   * against no budget.
   */
  waitForModel(turn: number, ahead: number): Promise<void>
  /** Judges and does one call. With an approval: reads the targets and judges again. */
  act(turn: number, call: number, tool: string, approvalId: string | null): Promise<CallOutcome>
  /** Waits until what was written shows, or until it is clear that it does not. */
  verify(turn: number, call: number): Promise<CallOutcome>
  /** Returns when the approval is settled; `interrupted` when the run ends for another reason. */
  waitForDecision(approvalId: string, expiresInMs: number): Promise<DecisionStatus | 'interrupted'>
  /** Waits before a kept ending is judged again; a person may end the run meanwhile. */
  pause(waitMs: number): Promise<'over' | 'interrupted'>
  /** Asked between steps: true when the run has ended (cancelled, or its alerts ended). */
  interrupted(turn: number): Promise<boolean>
  /** The same between a model's answer and its first call: the world went on meanwhile. */
  isStillWanted(turn: number): Promise<boolean>
  /** Called after each turn with what another run needs: the workflow may continue as new. */
  checkpoint(progress: LoopProgress): Promise<void>
  now(): number
}

export type LoopLimits = {
  maxTurns: number
  timeBudgetMs: number
  /** An answer that could not be used takes no turn. Absent in runs of version 0.1.0. */
  correctionsAreFree?: boolean
}

/** Everything the loop remembers between turns. */
export type LoopProgress = { turn: number; workedMs: number; corrections: number; correctionsInARow: number }

export const freshProgress: LoopProgress = { turn: 0, workedMs: 0, corrections: 0, correctionsInARow: 0 }

const maxCorrectionsInARow = 2
const maxCorrections = 5
/** Asked again this often for one call, the platform changes faster than people can decide. */
const asksPerCall = 5

const budgetCodes = { tokens: 'TOKEN_BUDGET', bytes: 'BYTE_BUDGET', money: 'MONEY_BUDGET' } as const

/**
 * Runs turns until the incident is closed or a limit demands a person. Never throws for a port's
 * answer.
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
        // The question was put off, not answered: the turn begins again unless the run has ended.
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

/** The calls of one answer, in order: a look-up enables the call behind it. */
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
        // An ending that is kept asks nobody and costs no time of the budget.
        if ((await ports.pause(outcome.waitMs)) === 'interrupted') return { end: 'closed' }
        break
      case 'ask': {
        asked += 1
        // Waiting for a person counts against no budget.
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
