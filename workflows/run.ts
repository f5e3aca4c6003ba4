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
import { lineTaskQueue, llmTaskQueue } from '../domain/step-key.ts'
import type { LoopLimits, LoopProgress } from './loop.ts'
import type { DecideAnswer, Interruption, Pending, ReceivedDecision } from './outcome.ts'

/** Most decisions that one activity handles. */
const batchSize = 100
/** Most signals that a run handles. After more signals, the run only reads its row at intervals. */
export const signalsPerRun = 5_000

type Waiting = { decision: ReceivedDecision; answer(answer: DecideAnswer): void; fail(error: unknown): void }

type DecisionQueue = {
  /** Counts one message of any kind. Returns false if this run has handled too many messages. */
  admitSignal(): boolean
  isOverLimit(): boolean
  /**
   * Returns the answer once the decision was handled. A decision that is sent twice while it waits
   * gets one answer.
   */
  weigh(decision: ReceivedDecision): Promise<DecideAnswer>
}

/**
 * Handles decisions from Temporal in batches, one batch after another, in order. A thousand forged
 * decisions cost ten activities, and a real decision among them is handled with its batch.
 * `weighAll` returns an answer for each decision.
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

const unanswered: DecideAnswer = { outcome: 'refused', status: null, message: 'this decision was not processed' }

const order: readonly Interruption[] = ['stopped', 'cancel', 'alert_resolved']

type Interruptions = {
  add(why: Interruption): void
  /**
   * Takes the next interruption to check: a stop before the end of alerts. Null if none is left.
   */
  take(): Interruption | null
  isAny(): boolean
}

/**
 * Keeps interruptions until they are checked. `isKeepingAll`: whether the end of the alerts is kept
 * beside a stop signal, which may not be from a person. Runs of version 0.1.0 kept only one
 * interruption, and a stop replaced the end of the alerts.
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
  /** Workflow id of the group, which is signalled when this run waits, resumes and ends. */
  group: string
  resume?: { progress: LoopProgress } & LoopLimits
}

/** State of one run, shared by its handlers (`signals.ts`) and its steps (`steps.ts`). */
export type RunState = {
  input: InvestigationInput
  /**
   * True since 0.2: decisions are handled in batches, and a signal stops nothing until a row shows
   * a person's request. False for earlier runs, which must replay as they ran.
   */
  isGuarded: boolean
  interruptions: Interruptions
  decisions: DecisionQueue
  /**
   * Counts reasons to read the approval's row again. `seenWakes`: the count up to which a wait has
   * read the row.
   */
  wakes: number
  seenWakes: number
  /** Number of decisions that a run of version 0.1.0 has handled. */
  unguardedDecisions: number
  pending: Pending
  /** The cancellation scope of a request to the model or the wait for a slot; null otherwise. */
  thinking: CancellationScope | null
  stop: { isAsked: boolean; isLooking: boolean; checks: number }
}

/** Activities with short statements on the rows of the run. */
export const rows = proxyActivities<ContextActivities & ApprovalActivities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '6h',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

/** Activity that gathers the facts. The activity retries while the database is unreachable. */
export const context = proxyActivities<ContextActivities>({
  startToCloseTimeout: '660s',
  scheduleToCloseTimeout: '660s',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '10s' },
})

/** Activities that run tools: they change or read the platform. */
export const world = proxyActivities<ActActivities>({
  startToCloseTimeout: '3h',
  scheduleToCloseTimeout: '1h',
  heartbeatTimeout: '15s',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

const models = (queueOf: (taskQueue: string) => string) =>
  proxyActivities<ThinkActivities>({
    // Uses a separate task queue, because rate limits do not apply to eagerly dispatched
    // activities.
    taskQueue: queueOf(workflowInfo().taskQueue),
    startToCloseTimeout: '330s',
    scheduleToCloseTimeout: '15m',
    heartbeatTimeout: '20s',
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })

/** Asks the model for one turn. */
export async function think(incidentId: string, attempt: number, turn: number) {
  const input = { incidentId, attempt, turn, mayWait: true }
  return await models(llmTaskQueue).think.executeWithOptions({ summary: `turn ${turn}` }, [input])
}

/**
 * Waits for a slot of the model. The wait does not count against the time limit of the answer. A
 * wait that no worker takes ends after a minute, because workers of an earlier build take no waits.
 */
export async function awaitSlot(incidentId: string, attempt: number, turn: number) {
  const options = {
    scheduleToStartTimeout: '1m' as const,
    startToCloseTimeout: '6m' as const,
    scheduleToCloseTimeout: '10m' as const,
  }
  return await models(lineTaskQueue).awaitSlot.executeWithOptions({ ...options, summary: `turn ${turn}: wait` }, [
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

/** Shows what the run is about in Temporal's own pages, as keywords. */
export function showInTemporal(attributes: Partial<Record<keyof typeof keys, string | null>>): void {
  const named = Object.entries(attributes) as [keyof typeof keys, string | null][]
  upsertSearchAttributes(named.map(([name, value]) => ({ key: keys[name], value })))
}
