import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { nodeFlags } from './bound/engine.ts'
import type { PlanReport, PlanRequest } from './plan-process.ts'

const file = fileURLToPath(new URL('./plan-process.ts', import.meta.url))

/**
 * What the search says until it is done, `killAfterMs` are over, or nobody wants it any more. Then it and its solver are dead.
 * Nothing of our environment goes with it: it needs none, and crashes may print it.
 */
export async function* reportsOf(
  request: PlanRequest,
  killAfterMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<PlanReport> {
  // A separate group, so that the solver it starts dies with it.
  const child = spawn(process.execPath, [...nodeFlags, file], {
    env: {},
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  })
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
  const timer = setTimeout(kill, killAfterMs)
  signal?.addEventListener('abort', kill, { once: true })
  process.once('exit', kill)
  if (signal?.aborted) kill()
  child.on('error', kill)
  child.stdin.on('error', () => {})
  try {
    child.stdin.write(`${JSON.stringify(request)}\n`)
    for await (const line of createInterface({ input: child.stdout })) {
      let report: PlanReport
      try {
        report = JSON.parse(line)
      } catch {
        // Killed in the middle of a line.
        break
      }
      yield report
      if (report.done) break
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', kill)
    process.removeListener('exit', kill)
    kill()
  }
}
