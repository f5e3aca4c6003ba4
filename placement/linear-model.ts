/** A mixed-integer program in numbers only. Column 0…n-1 are yes or no; column n, where `hasLevel`, is a number ≥ 0. */
export type LinearModel = {
  binaries: number
  hasLevel: boolean
  /** Minimised. */
  objective: Term[]
  rows: Row[]
}

export type Term = [column: number, coefficient: number]

/** At most one term per column. `equal` or `atMost` is given. */
export type Row = { terms: Term[]; equal?: number; atMost?: number }

export type SolveRequest = { model: LinearModel; timeLimitSeconds: number; relativeGap: number }

/**
 * `infeasible` is proved. `unknown` is everything that proves nothing, time out first of all. Values are those of the
 * columns, rounded to 0 or 1 for the binaries.
 */
export type SolveAnswer =
  | { status: 'optimal' | 'feasible'; values: number[] }
  | { status: 'infeasible' }
  | { status: 'unknown' }
