import { activityInfo, Context } from '@temporalio/activity'

/** What an activity waits for, by its context: said with every beat, so that Temporal's pages show it. */
const waits = new WeakMap<Context, { waitsFor: string; since: string }>()

/** Says what this activity waits for from now on; null when it waits for nothing any more. */
export function waitFor(what: string | null): void {
  const context = Context.current()
  if (what === null) waits.delete(context)
  else if (waits.get(context)?.waitsFor !== what) {
    waits.set(context, { waitsFor: what, since: new Date().toISOString() })
    context.heartbeat(waits.get(context))
  }
}

/** Does the work of an activity and beats while it does, so that a dead worker is noticed and a cancellation arrives. */
export async function beating<T>(work: () => Promise<T>): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 30_000
  const context = Context.current()
  const beat = () => context.heartbeat(waits.get(context))
  beat()
  const timer = setInterval(beat, timeoutMs / 3)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
