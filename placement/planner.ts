import { on } from 'node:events'
import { Worker } from 'node:worker_threads'
import { engineNames } from './bound/assignment.ts'
import type { PlanReport, PlanRequest } from './plan-worker.ts'

/** A planning thread for one request at a time, and its solvers' process ids: 0 for no solver. */
type Planner = { worker: Worker; solverPids: Int32Array; stop(): void }

/**
 * A planner that waits for the next request, because starting a planner is most of the cost of a
 * small request.
 */
let idle: Planner | null = null
const running = new Set<Planner>()

/** Starts a planner for the next request. A waiting planner does not keep the process alive. */
export function warmPlanner(): void {
  idle ??= startPlanner()
}

/**
 * Yields the search's reports until it is done, `killAfterMs` are over, or the caller stops
 * reading. A planner that is done waits for the next request; any other is killed with its solvers.
 */
export async function* askPlanner(
  request: PlanRequest,
  killAfterMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<PlanReport> {
  const planner = idle ?? startPlanner()
  idle = null
  const timeIsUp = new AbortController()
  const timer = setTimeout(() => timeIsUp.abort(), killAfterMs)
  let isDone = false
  planner.worker.ref()
  try {
    const reports = on(planner.worker, 'message', {
      close: ['exit'],
      signal: AbortSignal.any([timeIsUp.signal, ...(signal ? [signal] : [])]),
    })
    planner.worker.postMessage(request)
    for await (const [report] of reports as AsyncIterable<[PlanReport]>) {
      isDone = report.done
      yield report
      if (isDone) break
    }
  } catch {
    // Keeps the earlier reports valid if the time is over, the caller stopped, or the thread
    // failed.
  } finally {
    clearTimeout(timer)
    planner.worker.unref()
    if (isDone && !idle) idle = planner
    else planner.stop()
  }
}

/** Starts a thread without environment variables, because it needs none. */
function startPlanner(): Planner {
  const shared = new SharedArrayBuffer(engineNames.length * Int32Array.BYTES_PER_ELEMENT)
  const worker = new Worker(new URL('./plan-worker.ts', import.meta.url), {
    workerData: shared,
    env: {},
    execArgv: [],
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 2_048 },
  })
  const solverPids = new Int32Array(shared)
  const planner = { worker, solverPids, stop }
  running.add(planner)
  worker.unref()
  // Warns about a failed thread, because the plan itself would only report that time was up. `exit`
  // follows the error and ends the wait for reports.
  worker.on('error', (error) => process.emitWarning(`the search for a plan failed: ${error.message}`))
  worker.once('exit', stop)
  process.once('exit', stop)
  return planner

  function stop() {
    if (!running.delete(planner)) return
    process.removeListener('exit', stop)
    if (idle === planner) idle = null
    for (const index of solverPids.keys()) killSolver(Atomics.exchange(solverPids, index, 0))
    void worker.terminate()
  }
}

function killSolver(pid: number): void {
  try {
    if (pid > 0) process.kill(pid, 'SIGKILL')
  } catch {
    // Ignores the error, because the process has already ended.
  }
}
