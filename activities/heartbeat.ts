import { activityInfo, heartbeat } from '@temporalio/activity'

/** Does the work of an activity and beats while it does, so that a dead worker is noticed and a cancellation arrives. */
export async function beating<T>(work: () => Promise<T>): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 30_000
  heartbeat()
  // The context belongs to this call: a timer keeps it, so `heartbeat` may be called from there.
  const timer = setInterval(() => heartbeat(), timeoutMs / 3)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
