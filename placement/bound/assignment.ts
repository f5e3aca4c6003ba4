import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { noteCut } from '../cluster/size-classes.ts'

export const engineNames = ['glpk', 'highs'] as const
export type EngineName = (typeof engineNames)[number]

export type SolverEngine = {
  /**
   * Answers the best within `limitMs`; `unknown` when that was too short or the process ended.
   * `maxNodes` ends the search after equal work on every machine, for engines that count it
   * (HiGHS).
   */
  solve(model: LinearModel, limitMs: number, maxNodes?: number): Promise<SolveAnswer>
  /** Kills the process, whatever it does. */
  stop(): void
}

/**
 * For processes with much short-lived data: a small young generation halves their memory and costs
 * no time.
 */
const nodeFlags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=2']

/** One that nobody asks for so long is ended, and its memory with it. */
const idleMs = 60_000
/** A solver gets this much beyond its limit: presolve and the first relaxation keep no time. */
const graceMs = 400

/**
 * A solver with a process from the first question on, kept for the next. Gets nothing of our
 * environment: it needs none, and crashes may print it. `onStart`: its process id.
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
      // One killed over the last question, or waiting too long, starts again.
      if (!child || child.killed || child.exitCode !== null || child.signalCode !== null) child = begin()
      const asked = child
      clearTimeout(idle)
      return new Promise((resolve) => {
        const finish = (answer: SolveAnswer) => {
          clearTimeout(timer)
          idle = setTimeout(rest, idleMs).unref()
          lines.close()
          asked.off('close', onEnd)
          // With more time it might have said more.
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
          // An engine that complains where its answer is expected is in no state to be asked again.
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
    // A pipe to a killed process breaks; its end is already told by `close`.
    started.stdin.on('error', () => {})
    started.on('error', () => {})
    if (started.pid !== undefined) onStart?.(started.pid)
    return started
  }
}

/** GLPK takes no program without columns, and calls it an error on the stream of its answers. */
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
 * A linear program in numbers. Columns 0…binaries-1 are yes or no, later ones numbers ≥ 0. Without
 * binaries it is solved as a plain one, and the answer has its prices.
 */
export type LinearModel = {
  columns: number
  binaries: number
  /** Minimised. */
  objective: Term[]
  rows: LpRow[]
}

export type Term = [column: number, coefficient: number]

/** At most one term per column; one bound. */
export type LpRow = { terms: Term[]; equal?: number; atMost?: number; atLeast?: number }

export type SolveRequest = { model: LinearModel; timeLimitSeconds: number; maxNodes: number | undefined }

/**
 * `infeasible`: the solver's claim. `unknown`: all that says nothing, time out first. Binaries are
 * rounded to 0 or 1. `prices`: of a plain program, the cost of one more of each row's bound.
 * `isTimeUp` false: the work ended it, alike on all machines.
 */
export type SolveAnswer = { isTimeUp?: boolean } & (
  | { status: 'optimal' | 'feasible'; values: number[]; prices: number[] | null }
  | { status: 'infeasible' }
  | { status: 'unknown' }
)

/** How many of one kind of VM, how large in whole placementGroups, and what one is worth. */
export type KnapsackItem = { ram: number; cpu: number; copies: number; worth: number }

/**
 * The best packing of every room up to (ram, cpu), all at once: `best[r * (cpu + 1) + c]`. Exact
 * for whole worths below 2^53; bounded by the copies.
 */
export function bestPackings(items: readonly KnapsackItem[], ram: number, cpu: number): Float64Array {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  for (const { item, count } of splitIntoBundles(items, ram, cpu)) pack({ best, taken: null, ram, cpu }, item, count)
  return best
}

/** Numbers of each item in this room's best packing: every choice is followed back. */
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

/** Copies in bundles of 1, 2, 4, …: every number is a sum of bundles. No worthless ones. */
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
 * The best worth for every room up to `ram` and `cpu`, row by row, and whether the last bundle was
 * taken.
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
