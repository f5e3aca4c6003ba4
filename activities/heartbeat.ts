import { activityInfo, Context } from '@temporalio/activity'

/** The thing that an activity waits for, in every heartbeat, so that Temporal's pages show it. */
export const waits = new WeakMap<Context, { waitsFor: string; since: string }>()

/** How far it is, in numbers alone: Temporal keeps what a heartbeat says. */
const progress = new WeakMap<Context, Record<string, number>>()

/** Shows this activity's progress in Temporal from its next heartbeat; null when that is over. */
export function showDetails(details: Record<string, number> | null): void {
  const context = Context.current()
  if (details === null) progress.delete(context)
  else progress.set(context, details)
}

/** Heartbeats while an activity works: a dead worker is noticed, and a cancellation arrives. */
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
