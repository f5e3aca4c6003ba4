import { defineSearchAttributeKey } from '@temporalio/common'
import {
  ActivityCancellationType,
  type CancellationScope,
  proxyActivities,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import type { ActActivities } from '../activities/act.ts'
import type { ApprovalActivities } from '../activities/approvals.ts'
import type { ContextActivities } from '../activities/context.ts'
import type { ThinkActivities } from '../activities/think.ts'
import { llmTaskQueue } from '../domain/step-key.ts'
import type { LoopLimits, LoopProgress } from './loop.ts'
import type { DecideAnswer, Interruption, Pending, ReceivedDecision } from './outcome.ts'

/** What one activity weighs at most. */
const batchSize = 100
/** More signals in one run are a flood: it takes no more, and reads its row now and then. */
export const signalsPerRun = 5_000

type Waiting = { decision: ReceivedDecision; answer(answer: DecideAnswer): void; fail(error: unknown): void }

type DecisionQueue = {
  /** Counts one message of any kind; false when this run takes no more. */
  admitSignal(): boolean
  isOverLimit(): boolean
  /**
   * Answers once it was weighed. A repetition is dropped while the first waits: its answer is the
   * same.
   */
  weigh(decision: ReceivedDecision): Promise<DecideAnswer>
}

/**
 * Decisions that come by Temporal: weighed in batches, one after another, in their order. A
 * thousand forged ones cost ten activities, and the real one among them is weighed with its batch.
 * `weighAll` answers one for each.
 */
export function createDecisionQueue(
  weighAll: (batch: ReceivedDecision[]) => Promise<DecideAnswer[]>,
  onDecided: () => void,
): DecisionQueue {
  const queue: Waiting[] = []
  const waiting = new Map<string, Promise<DecideAnswer>>()
  let isDraining = false
  let signals = 0

  async function drain(): Promise<void> {
    if (isDraining) return
    isDraining = true
    while (queue.length > 0) {
      const batch = queue.splice(0, batchSize)
      try {
        const answers = await weighAll(batch.map(({ decision }) => decision))
        for (const [index, { answer }] of batch.entries()) answer(answers[index] ?? unanswered)
        if (answers.some(({ outcome }) => outcome !== 'forbidden')) onDecided()
      } catch (error) {
        for (const { fail } of batch) fail(error)
      }
    }
    isDraining = false
  }

  return {
    admitSignal: () => ++signals <= signalsPerRun,
    isOverLimit: () => signals >= signalsPerRun,
    weigh(decision) {
      const key = JSON.stringify(decision)
      const same = waiting.get(key)
      if (same) return same
      const answered = new Promise<DecideAnswer>((answer, fail) => queue.push({ decision, answer, fail }))
      waiting.set(key, answered)
      const forget = () => waiting.delete(key)
      answered.then(forget, forget)
      void drain()
      return answered
    },
  }
}

const unanswered: DecideAnswer = { outcome: 'refused', status: null, message: 'this decision was not weighed' }

const order: readonly Interruption[] = ['stopped', 'cancel', 'alert_resolved']

type Interruptions = {
  add(why: Interruption): void
  /** Takes the next one to look into: a stop before an ended alert. Null when there is none. */
  take(): Interruption | null
  isAny(): boolean
}

/**
 * A request to stop, until it is looked into. `isKeepingAll`: a signal without a person must not
 * hide that the alerts ended. Runs that began with version 0.1.0 kept one, and a stop replaced it.
 */
export function createInterruptions(isKeepingAll: boolean): Interruptions {
  const waiting = new Set<Interruption>()
  return {
    add(why) {
      const isStop = why !== 'alert_resolved'
      if (!isKeepingAll && !isStop && waiting.size > 0) return
      if (!isKeepingAll) waiting.clear()
      waiting.add(why)
    },
    take() {
      const why = order.find((each) => waiting.has(each)) ?? null
      if (why) waiting.delete(why)
      return why
    },
    isAny: () => waiting.size > 0,
  }
}

export type InvestigationInput = {
  incidentId: string
  attempt: number
  role: 'leader' | 'follower'
  groupId: string
  /** Workflow id of the group, which is signalled when this run parks, resumes and ends. */
  group: string
  resume?: { progress: LoopProgress } & LoopLimits
}

/** What one run remembers between its handlers (`signals.ts`) and its steps (`steps.ts`). */
export type RunState = {
  input: InvestigationInput
  /**
   * Since 0.2 decisions are weighed in batches, and nothing is given up for a signal before a row
   * says that a person wants it. False for runs that began earlier: they replay as they went.
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

/** Short statements on the rows of the run. */
export const rows = proxyActivities<ContextActivities & ApprovalActivities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '6h',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

/** Assembles the facts. The activity retries while the database is away. */
export const context = proxyActivities<ContextActivities>({
  startToCloseTimeout: '660s',
  scheduleToCloseTimeout: '660s',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '10s' },
})

/** Acts on the world and looks at it. */
export const world = proxyActivities<ActActivities>({
  startToCloseTimeout: '3h',
  scheduleToCloseTimeout: '1h',
  heartbeatTimeout: '15s',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

const models = () =>
  proxyActivities<ThinkActivities>({
    // A separate queue: rate limits hold only where activities are not dispatched eagerly.
    taskQueue: llmTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '330s',
    scheduleToCloseTimeout: '15m',
    heartbeatTimeout: '20s',
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })

/** Asks the model for one turn. */
export async function think(incidentId: string, attempt: number, turn: number) {
  const input = { incidentId, attempt, turn, mayWait: true }
  return await models().think.executeWithOptions({ summary: `turn ${turn}` }, [input])
}

/** Waits for a place at the model. The wait takes no time from the answer. */
export async function awaitSlot(incidentId: string, attempt: number, turn: number) {
  const options = { startToCloseTimeout: '1m' as const, scheduleToCloseTimeout: '10m' as const }
  return await models().awaitSlot.executeWithOptions({ ...options, summary: `turn ${turn}: wait` }, [
    { incidentId, attempt },
  ])
}

const keys = {
  status: defineSearchAttributeKey('Status', 'KEYWORD'),
  role: defineSearchAttributeKey('Role', 'KEYWORD'),
  incidentType: defineSearchAttributeKey('IncidentType', 'KEYWORD'),
  severity: defineSearchAttributeKey('Severity', 'KEYWORD'),
  target: defineSearchAttributeKey('Target', 'KEYWORD'),
}

/** Says in Temporal's own pages what this run is about; all are keywords. */
export function showInTemporal(attributes: Partial<Record<keyof typeof keys, string | null>>): void {
  const named = Object.entries(attributes) as [keyof typeof keys, string | null][]
  upsertSearchAttributes(named.map(([name, value]) => ({ key: keys[name], value })))
}
