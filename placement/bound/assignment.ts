import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { noteCut } from '../cluster/size-classes.ts'

export const engineNames = ['glpk', 'highs'] as const
export type EngineName = (typeof engineNames)[number]

export type SolverEngine = {
  /**
   * Returns the best answer within `limitMs`. `unknown` if the time was too short or the process
   * ended. `maxNodes` ends the search after an amount of work that is equal on every machine, for
   * engines that count nodes (HiGHS).
   */
  solve(model: LinearModel, limitMs: number, maxNodes?: number): Promise<SolveAnswer>
  /** Kills the solver's process, even during a solve. */
  stop(): void
}

/**
 * Options for Node processes with much short-lived data. A small young generation halves the memory
 * of such a process and costs no time.
 */
const nodeFlags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=2']

/** Milliseconds after which an idle solver process is killed, to free its memory. */
const idleMs = 60_000
/**
 * Milliseconds by which a solver may exceed its limit, because presolve and the first relaxation
 * check no time.
 */
const graceMs = 400

/**
 * Starts a solver. The solver's process begins with the first model and also solves later ones. The
 * process gets no environment variables, because it needs none and might print them in a crash.
 * `onStart` gets the process id.
 */
export function startEngine(name: EngineName, onStart?: (pid: number) => void): SolverEngine {
  const file = fileURLToPath(new URL('./solver-process.ts', import.meta.url))
  let child: ReturnType<typeof begin> | null = null
  const rest = () => void child?.kill('SIGKILL')
  let idle: NodeJS.Timeout | undefined
  return {
    async solve(model, limitMs, maxNodes) {
      if (limitMs <= 0) {
        noteCut()
        return { status: 'unknown' }
      }
      if (model.columns === 0) return answerEmpty(model)
      // Starts a new process after a kill or a long idle time.
      if (!child || child.killed || child.exitCode !== null || child.signalCode !== null) child = begin()
      const asked = child
      clearTimeout(idle)
      return new Promise((resolve) => {
        const finish = (answer: SolveAnswer) => {
          clearTimeout(timer)
          idle = setTimeout(rest, idleMs).unref()
          lines.close()
          asked.off('close', onEnd)
          // Records that more time might have led to an answer.
          if (answer.isTimeUp !== false && (answer.status === 'unknown' || answer.status === 'feasible')) noteCut()
          resolve(answer)
        }
        const onEnd = () => finish({ status: 'unknown' })
        const timer = setTimeout(() => {
          asked.kill('SIGKILL')
          onEnd()
        }, limitMs + graceMs)
        const lines = createInterface({ input: asked.stdout })
        lines.once('line', (line) => {
          const answer = readAnswer(line)
          // Kills an engine that prints an error instead of an answer.
          if (!answer) asked.kill('SIGKILL')
          finish(answer ?? { status: 'unknown' })
        })
        asked.once('close', onEnd)
        const request: SolveRequest = { model, timeLimitSeconds: limitMs / 1_000, maxNodes }
        asked.stdin.write(`${JSON.stringify(request)}\n`)
      })
    },
    stop: () => {
      clearTimeout(idle)
      child?.kill('SIGKILL')
    },
  }

  function begin() {
    const started = spawn(process.execPath, [...nodeFlags, '--optimize-for-size', file, name], {
      env: {},
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    // Ignores the error of a pipe to a killed process, because `close` already reports the end of
    // the process.
    started.stdin.on('error', () => {})
    started.on('error', () => {})
    if (started.pid !== undefined) onStart?.(started.pid)
    return started
  }
}

/**
 * Answers a model without columns without a solver: GLPK rejects it, and prints the error into the
 * stream of its answers.
 */
function answerEmpty({ rows }: LinearModel): SolveAnswer {
  const holds = ({ equal = 0, atLeast = 0, atMost = 0 }: LpRow) => equal === 0 && atLeast <= 0 && atMost >= 0
  return rows.every(holds) ? { status: 'optimal', values: [], prices: rows.map(() => 0) } : { status: 'infeasible' }
}

function readAnswer(line: string): SolveAnswer | null {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

/**
 * A linear program in numbers. The first `binaries` columns are binary, and later columns are
 * numbers ≥ 0. Without binaries it is a plain linear program, whose answer has prices.
 */
export type LinearModel = {
  columns: number
  binaries: number
  /** The terms of the sum to minimise. */
  objective: Term[]
  rows: LpRow[]
}

export type Term = [column: number, coefficient: number]

/** A row of a linear program. It has at most one term per column, and one bound. */
export type LpRow = { terms: Term[]; equal?: number; atMost?: number; atLeast?: number }

export type SolveRequest = { model: LinearModel; timeLimitSeconds: number; maxNodes: number | undefined }

/**
 * The answer of a solver. `infeasible`: the solver claims that no solution exists. `unknown`: no
 * conclusion, usually because of the time limit. Binaries are rounded to 0 or 1. `prices`: for a
 * plain program, the cost of raising each row's bound by one. `isTimeUp` is false if the amount of
 * work ended the solve, which is equal on all machines.
 */
export type SolveAnswer = { isTimeUp?: boolean } & (
  | { status: 'optimal' | 'feasible'; values: number[]; prices: number[] | null }
  | { status: 'infeasible' }
  | { status: 'unknown' }
)

/** VMs of one kind: their size in whole units, their number, and the worth of each. */
export type KnapsackItem = { ram: number; cpu: number; copies: number; worth: number }

/**
 * Computes the best packing of every room up to (ram, cpu) at once: `best[r * (cpu + 1) + c]`. Uses
 * each item at most as often as it has copies. Exact for whole worths below 2^53.
 */
export function bestPackings(items: readonly KnapsackItem[], ram: number, cpu: number): Float64Array {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  for (const { item, count } of splitIntoBundles(items, ram, cpu)) pack({ best, taken: null, ram, cpu }, item, count)
  return best
}

/**
 * Returns how many of each item the best packing of this room contains, by tracing its choices
 * back.
 */
export function bestPacking(items: readonly KnapsackItem[], ram: number, cpu: number): number[] {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  const bundles = splitIntoBundles(items, ram, cpu).map((bundle) => ({ ...bundle, taken: new Uint8Array(best.length) }))
  for (const { item, count, taken } of bundles) pack({ best, taken, ram, cpu }, item, count)
  const counts: number[] = items.map(() => 0)
  let [r, c] = [ram, cpu]
  for (const { index, item, count, taken } of bundles.reverse()) {
    if (!taken[r * width + c]) continue
    counts[index]! += count
    r -= item.ram * count
    c -= item.cpu * count
  }
  return counts
}

/**
 * Splits copies into bundles of 1, 2, 4, …, whose sums give every number. Drops items without
 * worth.
 */
function splitIntoBundles(items: readonly KnapsackItem[], ram: number, cpu: number) {
  return items.flatMap((item, index) => {
    const bundles: { index: number; item: KnapsackItem; count: number }[] = []
    let left = item.worth > 0 ? copiesThatFit(item, ram, cpu) : 0
    for (let bundle = 1; left > 0; bundle *= 2) {
      const count = Math.min(bundle, left)
      left -= count
      bundles.push({ index, item, count })
    }
    return bundles
  })
}

function copiesThatFit(item: KnapsackItem, ram: number, cpu: number): number {
  return Math.min(
    item.ram > 0 ? Math.floor(ram / item.ram) : item.copies,
    item.cpu > 0 ? Math.floor(cpu / item.cpu) : item.copies,
    item.copies,
  )
}

/**
 * The best worth for every room up to `ram` and `cpu`, row by row. `taken`: whether the last bundle
 * is part of it.
 */
type Table = { best: Float64Array; taken: Uint8Array | null; ram: number; cpu: number }

function pack({ best, taken, ram, cpu }: Table, item: KnapsackItem, count: number): void {
  const width = cpu + 1
  const [dr, dc, worth] = [item.ram * count, item.cpu * count, item.worth * count]
  for (let r = ram; r >= dr; r -= 1) {
    const row = r * width
    const below = (r - dr) * width - dc
    for (let c = cpu; c >= dc; c -= 1) {
      const together = best[below + c]! + worth
      if (together <= best[row + c]!) continue
      best[row + c] = together
      if (taken) taken[row + c] = 1
    }
  }
}
