import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { SolveAnswer, SolveRequest } from './linear-model.ts'

export type Glpk = {
  /**
   * Answers with the best there is by `limitMs`, and `unknown` at `deadlineMs` (of `performance.now()`) or when the process
   * ends; then it is gone for good.
   */
  solve(request: Omit<SolveRequest, 'timeLimitSeconds'>, deadlineMs: number, limitMs?: number): Promise<SolveAnswer>
  /** Kills the process, whatever it does. */
  stop(): void
}

const file = fileURLToPath(new URL('./glpk-process.ts', import.meta.url))

/** Starts the solver's process. Nothing of our environment goes with it: it needs none, and crashes may print it. */
export function startGlpk(): Glpk {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    env: {},
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  // A pipe to a killed process breaks; its end is already told by `close`.
  child.stdin.on('error', () => {})
  const lines = createInterface({ input: child.stdout })
  return {
    async solve(request, deadlineMs, limitMs = Number.POSITIVE_INFINITY) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0 || !isAlive(child)) return { status: 'unknown' }
      return new Promise((resolve) => {
        const finish = (answer: SolveAnswer) => {
          clearTimeout(timer)
          lines.off('line', onLine)
          child.off('close', onEnd)
          child.off('error', onEnd)
          resolve(answer)
        }
        const onLine = (line: string) => finish(JSON.parse(line))
        const onEnd = () => finish({ status: 'unknown' })
        const timer = setTimeout(() => {
          child.kill('SIGKILL')
          onEnd()
        }, leftMs)
        lines.once('line', onLine)
        child.once('close', onEnd)
        child.once('error', onEnd)
        // Its own limit is a little shorter, so that what it has found by then still arrives.
        const timeLimitSeconds = Math.max(0.05, Math.min(limitMs, leftMs - 400) / 1_000)
        child.stdin.write(`${JSON.stringify({ ...request, timeLimitSeconds } satisfies SolveRequest)}\n`)
      })
    },
    stop: () => void child.kill('SIGKILL'),
  }
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null && child.pid !== undefined
}
