import type { DecideAnswer, Heard } from './messages.ts'
import type { Interruption } from './outcome.ts'

/** What one activity weighs at most. */
const batchSize = 100
/** More than this in one run is a flood: it hears no more, and reads its row from time to time instead. */
export const heardPerRun = 5_000

type Waiting = { heard: Heard; answer(answer: DecideAnswer): void; fail(error: unknown): void }

export type Hearing = {
  /** Counts one message of any kind; false when this run hears no more. */
  counts(): boolean
  isDeaf(): boolean
  /** Answers when it was weighed. The same message again is dropped while the first one waits: its answer is the same. */
  weigh(heard: Heard): Promise<DecideAnswer>
}

/**
 * The queue of decisions that come through Temporal: weighed in batches, one after another, in the order in which they came. A thousand
 * forged ones cost ten activities, and the real one among them is heard with its batch. `weighAll` answers one for each.
 */
export function hearing(weighAll: (batch: Heard[]) => Promise<DecideAnswer[]>, onDecided: () => void): Hearing {
  const queue: Waiting[] = []
  const waiting = new Map<string, Promise<DecideAnswer>>()
  let isDraining = false
  let count = 0

  async function drain(): Promise<void> {
    if (isDraining) return
    isDraining = true
    while (queue.length > 0) {
      const batch = queue.splice(0, batchSize)
      try {
        const answers = await weighAll(batch.map(({ heard }) => heard))
        for (const [index, { answer }] of batch.entries()) answer(answers[index] ?? unanswered)
        if (answers.some(({ outcome }) => outcome !== 'forbidden')) onDecided()
      } catch (error) {
        for (const { fail } of batch) fail(error)
      }
    }
    isDraining = false
  }

  return {
    counts: () => ++count <= heardPerRun,
    isDeaf: () => count >= heardPerRun,
    weigh(heard) {
      const key = JSON.stringify(heard)
      const known = waiting.get(key)
      if (known) return known
      const answered = new Promise<DecideAnswer>((answer, fail) => queue.push({ heard, answer, fail }))
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
export function interruptions(isKeepingAll: boolean): Interruptions {
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
