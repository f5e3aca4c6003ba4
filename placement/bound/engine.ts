import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { noteCut } from '../cluster/capacity.ts'

export const engineNames = ['glpk', 'highs'] as const
export type EngineName = (typeof engineNames)[number]

export type Engine = {
  /** Answers with the best there is within `limitMs`; `unknown` when that was too short or the process has ended. */
  solve(model: LinearModel, limitMs: number, relativeGap?: number): Promise<SolveAnswer>
  /** Kills the process, whatever it does. */
  stop(): void
}

/** For processes that make much short-lived data: a small young generation halves their memory and costs no time. */
export const nodeFlags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=2']

/** A solver gets this much longer than its limit: presolve and the first relaxation keep no time. */
const graceMs = 400

/** Starts a solver's process. Nothing of our environment goes with it: it needs none, and crashes may print it. */
export function startEngine(name: EngineName): Engine {
  const file = fileURLToPath(new URL(`./${name}-process.ts`, import.meta.url))
  let child = begin()
  return {
    async solve(model, limitMs, relativeGap = 0) {
      if (limitMs <= 0) {
        noteCut()
        return { status: 'unknown' }
      }
      // One that was killed over the last question starts again for the next.
      if (child.killed || child.exitCode !== null || child.signalCode !== null) child = begin()
      const asked = child
      return new Promise((resolve) => {
        const finish = (answer: SolveAnswer) => {
          clearTimeout(timer)
          lines.close()
          asked.off('close', onEnd)
          // With more time it might have said more.
          if (answer.status === 'unknown' || answer.status === 'feasible') noteCut()
          resolve(answer)
        }
        const onEnd = () => finish({ status: 'unknown' })
        const timer = setTimeout(() => {
          asked.kill('SIGKILL')
          onEnd()
        }, limitMs + graceMs)
        const lines = createInterface({ input: asked.stdout })
        lines.once('line', (line) => finish(JSON.parse(line)))
        asked.once('close', onEnd)
        const request: SolveRequest = { model, timeLimitSeconds: limitMs / 1_000, relativeGap }
        asked.stdin.write(`${JSON.stringify(request)}\n`)
      })
    },
    stop: () => void child.kill('SIGKILL'),
  }

  function begin() {
    const started = spawn(process.execPath, [...nodeFlags, '--optimize-for-size', file], {
      env: {},
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    // A pipe to a killed process breaks; its end is already told by `close`.
    started.stdin.on('error', () => {})
    started.on('error', () => {})
    return started
  }
}

/** The same, with a process from the first question on only. */
export function lazyEngine(name: EngineName): Engine {
  let engine: Engine | null = null
  return {
    solve(model, limitMs, relativeGap) {
      engine ??= startEngine(name)
      return engine.solve(model, limitMs, relativeGap)
    },
    stop: () => engine?.stop(),
  }
}

/**
 * A linear program in numbers only. Columns 0…binaries-1 are yes or no, those behind them are numbers ≥ 0. Without binaries it
 * is solved as a plain one, and the answer has its prices.
 */
export type LinearModel = {
  columns: number
  binaries: number
  /** Minimised. */
  objective: Term[]
  rows: Row[]
}

export type Term = [column: number, coefficient: number]

/** At most one term per column; one bound. */
export type Row = { terms: Term[]; equal?: number; atMost?: number; atLeast?: number }

export type SolveRequest = { model: LinearModel; timeLimitSeconds: number; relativeGap: number }

/**
 * `infeasible` is the solver's claim. `unknown` is everything that says nothing, time out first of all. Binaries are rounded to
 * 0 or 1. `prices`: of a plain program, what one more of each row's bound costs.
 */
export type SolveAnswer =
  | { status: 'optimal' | 'feasible'; values: number[]; prices: number[] | null }
  | { status: 'infeasible' }
  | { status: 'unknown' }
