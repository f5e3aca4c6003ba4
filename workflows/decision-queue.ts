import type { DecideAnswer, Interruption, ReceivedDecision } from './outcome.ts'

/** What one activity weighs at most. */
const batchSize = 100
/** More signals than this in one run are a flood: it takes no more, and reads its row from time to time instead. */
export const signalsPerRun = 5_000

type Waiting = { decision: ReceivedDecision; answer(answer: DecideAnswer): void; fail(error: unknown): void }

export type DecisionQueue = {
  /** Counts one message of any kind; false when this run takes no more. */
  admitSignal(): boolean
  isOverLimit(): boolean
  /** Answers when it was weighed. The same message again is dropped while the first one waits: its answer is the same. */
  weigh(decision: ReceivedDecision): Promise<DecideAnswer>
}

/**
 * The queue of decisions that come through Temporal: weighed in batches, one after another, in the order in which they came. A
 * thousand forged ones cost ten activities, and the real one among them is weighed with its batch. `weighAll` answers one for each.
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

export type Interruptions = {
  add(why: Interruption): void
  /** Takes the next one to look into: a stop before an alert that ended. Null when there is none. */
  take(): Interruption | null
  isAny(): boolean
}

/**
 * What asks the run to stop, until it is looked into. `isKeepingAll`: a signal that nobody stands behind must not hide that the alerts
 * ended. Runs that began with version 0.1.0 kept one, and a stop replaced it.
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
