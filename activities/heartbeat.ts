import { activityInfo, heartbeat } from '@temporalio/activity'

/** Beats until the returned function is called, so that a dead worker is noticed and a cancellation arrives. */
export function startHeartbeat(): () => void {
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 30_000
  heartbeat()
  // The context belongs to this call: a timer keeps it, so `heartbeat` may be called from there.
  const timer = setInterval(() => heartbeat(), timeoutMs / 3)
  return () => clearInterval(timer)
}
