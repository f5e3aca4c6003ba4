import type { Interruption } from './outcome.ts'

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
