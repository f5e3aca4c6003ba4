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
