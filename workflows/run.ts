import type { CancellationScope } from '@temporalio/workflow'
import type { DecisionQueue, Interruptions } from './decision-queue.ts'
import type { Progress } from './loop.ts'
import type { Pending } from './messages.ts'

export type InvestigationInput = {
  incidentId: string
  attempt: number
  role: 'leader' | 'follower'
  groupId: string
  /** Workflow id of the group, which is signalled when this run parks, resumes and ends. */
  group: string
  resume?: { progress: Progress; maxTurns: number; timeBudgetMs: number }
}

/** What one run remembers between its handlers (`signals.ts`) and its steps (`steps.ts`). */
export type Run = {
  input: InvestigationInput
  /**
   * Since 0.2 decisions are weighed in batches, and nothing is given up for a signal before a row says that a person wants it.
   * False for runs that began earlier: they replay as they went.
   */
  isGuarded: boolean
  interruptions: Interruptions
  decisions: DecisionQueue
  /** Counts reasons to read the row again; `seenWakes` is how many a wait has followed. */
  wakes: number
  seenWakes: number
  /** What a run of version 0.1.0 has weighed. */
  unguardedDecisions: number
  pending: Pending
  /** The scope in which the model is asked or waited for; null between. */
  thinking: CancellationScope | null
  stop: { isAsked: boolean; isLooking: boolean; checks: number }
}
