import { activityInfo, Context } from '@temporalio/activity'

/**
 * Names what each activity waits for, such as a free slot, and since when. Every heartbeat has it,
 * so that Temporal's pages show it.
 */
export const waits = new WeakMap<Context, { waitsFor: string; since: string }>()

/** Progress of activities, in numbers only, because Temporal stores heartbeats. */
const progress = new WeakMap<Context, Record<string, number>>()

/** Shows this activity's progress in Temporal from the next heartbeat on; null removes it. */
export function showDetails(details: Record<string, number> | null): void {
  const context = Context.current()
  if (details === null) progress.delete(context)
  else progress.set(context, details)
}

/** Sends heartbeats while an activity works, so that Temporal notices a crashed worker. */
export async function withHeartbeat<T>(work: () => Promise<T>): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 30_000
  const context = Context.current()
  const beat = () => context.heartbeat(waits.get(context) ?? progress.get(context))
  beat()
  const timer = setInterval(beat, timeoutMs / 3)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
