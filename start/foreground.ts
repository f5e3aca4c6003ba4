import { constants } from 'node:os'
import { type Running, type StartOptions, startEverything } from './everything.ts'
import type { Report } from './parts.ts'

/**
 * Starts everything and keeps it running until SIGINT, SIGTERM or SIGHUP, then stops it and answers the exit code. A second
 * signal kills what is left at once. `whenReady` gets the running system and a signal that is aborted when it is to stop;
 * if it throws, everything is stopped and the error goes on.
 */
export async function runInForeground(
  options: Omit<StartOptions, 'signal'>,
  report: Report,
  whenReady?: (running: Running, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const stopped = new AbortController()
  let running: Running | undefined
  let code = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopped.signal.aborted) {
      // Ending this process kills the children, see startEverything.
      process.exit(128 + constants.signals[signal])
    }
    // Ctrl-C is how one ends it, not a failure.
    code = signal === 'SIGINT' ? 0 : 128 + constants.signals[signal]
    stopped.abort()
  }
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, onSignal)
  // The children do not hold this process; without them something else must.
  const alive = setInterval(() => undefined, 60_000)
  try {
    running = await startEverything({ ...options, signal: stopped.signal }, report)
    const untilStopped = new Promise<void>((resolve) => {
      if (stopped.signal.aborted) resolve()
      stopped.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const follow = whenReady?.(running, stopped.signal)
    await Promise.race([untilStopped, (follow ?? Promise.resolve()).then(() => untilStopped)])
    return code
  } catch (error) {
    if (stopped.signal.aborted) return code
    throw error
  } finally {
    await running?.stop()
    clearInterval(alive)
    for (const signal of signals) process.off(signal, onSignal)
  }
}
