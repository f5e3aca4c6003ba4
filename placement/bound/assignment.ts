import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Instance } from '../cluster/instance.ts'
import { buildCapacityState, noteCut } from '../cluster/size-classes.ts'

export const engineNames = ['glpk', 'highs'] as const
export type EngineName = (typeof engineNames)[number]

export type SolverEngine = {
  /** Answers with the best there is within `limitMs`; `unknown` when that was too short or the process has ended. */
  solve(model: LinearModel, limitMs: number, relativeGap?: number): Promise<SolveAnswer>
  /** Kills the process, whatever it does. */
  stop(): void
}

/** For processes that make much short-lived data: a small young generation halves their memory and costs no time. */
const nodeFlags = ['--disable-warning=ExperimentalWarning', '--max-semi-space-size=2']

/** A solver gets this much longer than its limit: presolve and the first relaxation keep no time. */
const graceMs = 400

/**
 * A solver with a process from the first question on, which is kept for the next ones. Nothing of our environment goes with it: it needs
 * none, and crashes may print it. `onStart` gets its process id.
 */
export function startEngine(name: EngineName, onStart?: (pid: number) => void): SolverEngine {
  const file = fileURLToPath(new URL('./solver-process.ts', import.meta.url))
  let child: ReturnType<typeof begin> | null = null
  return {
    async solve(model, limitMs, relativeGap = 0) {
      if (limitMs <= 0) {
        noteCut()
        return { status: 'unknown' }
      }
      // One that was killed over the last question, or has waited too long for this one, starts again.
      if (!child || child.killed || child.exitCode !== null || child.signalCode !== null) child = begin()
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
    stop: () => void child?.kill('SIGKILL'),
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

/**
 * A linear program in numbers only. Columns 0…binaries-1 are yes or no, those behind them are numbers ≥ 0. Without binaries it
 * is solved as a plain one, and the answer has its prices.
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

export type SolveRequest = { model: LinearModel; timeLimitSeconds: number; relativeGap: number }

/**
 * `infeasible` is the solver's claim. `unknown` is everything that says nothing, time out first of all. Binaries are rounded to
 * 0 or 1. `prices`: of a plain program, what one more of each row's bound costs.
 */
export type SolveAnswer =
  | { status: 'optimal' | 'feasible'; values: number[]; prices: number[] | null }
  | { status: 'infeasible' }
  | { status: 'unknown' }

/** Where VMs end up: of every evacuee and of those that were allowed to move. */
export type Assignment = Map<number, number>

type AssignmentModel = { model: LinearModel; columns: [vm: number, host: number][] }

/**
 * End places as a program: every evacuee on exactly one host, every mover too, within RAM and CPU, no two of a group in one
 * domain, with at most so many movers away from home. Fewest migrations, then least memory moved. Null when a VM has no column at all,
 * which proves that there is no such placement.
 */
export function assignmentModel(
  instance: Instance,
  movers: readonly number[],
  maxMigrations: number,
): AssignmentModel | null {
  const { targets, hostRam, hostCpu, domain, vmRam, vmCpu, groupsOf, home, evacuees } = instance
  const room = buildCapacityState(instance)
  const chosen = [...evacuees, ...movers]
  // The room as it is without any of them: what stays is in it.
  for (const vm of chosen) room.place(vm, -1)
  const isMover = new Set(movers)
  const columns: [number, number][] = []
  const rows: LpRow[] = []
  const onHost: Term[][][] = Array.from({ length: targets }, () => [[], []])
  const inDomain = new Map<string, Term[]>()
  const homes: Term[] = []
  for (const vm of chosen) {
    const own: Term[] = []
    for (let host = 0; host < targets; host += 1) {
      if (!room.fits(vm, host)) continue
      const column = columns.push([vm, host]) - 1
      own.push([column, 1])
      // As parts of the capacity: solvers' tolerances are made for numbers near 1.
      onHost[host]![0]!.push([column, vmRam[vm]! / hostRam[host]!])
      onHost[host]![1]!.push([column, vmCpu[vm]! / hostCpu[host]!])
      for (const group of groupsOf[vm]!) {
        const key = `${group} ${domain[host]}`
        const terms = inDomain.get(key) ?? []
        terms.push([column, 1])
        inDomain.set(key, terms)
      }
      if (isMover.has(vm) && home[vm] === host) homes.push([column, 1])
    }
    if (own.length === 0) return null
    rows.push({ terms: own, equal: 1 })
  }
  for (const [host, [ram, cpu]] of onHost.entries()) {
    if (ram!.length === 0) continue
    rows.push({ terms: ram!, atMost: room.freeRam[host]! / hostRam[host]! })
    rows.push({ terms: cpu!, atMost: room.freeCpu[host]! / hostCpu[host]! })
  }
  for (const terms of inDomain.values()) if (terms.length > 1) rows.push({ terms, atMost: 1 })
  if (homes.length > 0) rows.push({ terms: homes, atLeast: movers.length - maxMigrations })
  // Of plans with as few migrations, the one that moves least memory: all of it together weighs less than one migration.
  const allRam = movers.reduce((sum, vm) => sum + vmRam[vm]!, 1)
  const objective = homes.map(([column]): Term => [column, -1 - (0.5 * vmRam[columns[column]![0]]!) / allRam])
  return { model: { columns: columns.length, binaries: columns.length, objective, rows }, columns }
}

/**
 * As many starts as there is room for while nothing else moves: every evacuee on one host at most. What counts is `worth`, and of what
 * counted before no less than was reached.
 */
export function buildStartModel(
  instance: Instance,
  worth: (vm: number) => number,
  before: readonly { worth: (vm: number) => number; reached: number }[],
): AssignmentModel {
  const built = assignmentModel(
    { ...instance, evacuees: instance.evacuees.filter((vm) => hasHost(instance, vm)) },
    [],
    0,
  )
  if (!built) return { model: { columns: 0, binaries: 0, objective: [], rows: [] }, columns: [] }
  const { model, columns } = built
  const termsOf = (of: (vm: number) => number) =>
    columns.flatMap(([vm], column): Term[] => (of(vm) > 0 ? [[column, of(vm)]] : []))
  const rows = [
    ...model.rows.map(({ equal, ...row }): LpRow => (equal === undefined ? row : { ...row, atMost: equal })),
    ...before.map((each): LpRow => ({ terms: termsOf(each.worth), atLeast: each.reached })),
  ]
  const objective = termsOf(worth).map(([column, of]): Term => [column, -of])
  return { model: { ...model, objective, rows: rows.filter(({ terms }) => terms.length > 0) }, columns }
}

function hasHost(instance: Instance, vm: number): boolean {
  const room = buildCapacityState(instance)
  for (const each of instance.evacuees) room.place(each, -1)
  return instance.hostRam.some((_, host) => host < instance.targets && room.fits(vm, host))
}

export function readAssignment({ columns }: AssignmentModel, values: readonly number[]): Assignment {
  return new Map(columns.filter((_, column) => values[column] === 1))
}

/** How many of one kind of VM, how large in whole placementGroups, and what one is worth. */
export type KnapsackItem = { ram: number; cpu: number; copies: number; worth: number }

/**
 * The most that can be packed into every room up to (ram, cpu) placementGroups, all at once: `best[r * (cpu + 1) + c]`. Exact for whole
 * worths below 2^53; bounded by the copies there are.
 */
export function bestPackings(items: readonly KnapsackItem[], ram: number, cpu: number): Float64Array {
  const width = cpu + 1
  const best = new Float64Array((ram + 1) * width)
  for (const { item, count } of splitIntoBundles(items, ram, cpu)) pack({ best, taken: null, ram, cpu }, item, count)
  return best
}

/** How many of each item make up the best packing of this one room: every choice is remembered, and followed back. */
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

/** Copies in bundles of 1, 2, 4, …: every number of copies is a sum of bundles. What is worth nothing is left out. */
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

/** The best worth for every room up to `ram` and `cpu`, row by row, and whether the last bundle was taken there. */
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
