// The second engine, in a separate process like the first: one JSON line in, one out. The only file that loads HiGHS.
import { createInterface } from 'node:readline'
import highsModule from 'highs'
import type { LinearModel, SolveAnswer, SolveRequest } from './assignment.ts'

// Its types describe the module as CommonJS sees it; what is loaded here is the function itself.
const highs = await (highsModule as unknown as typeof highsModule.default)()
const { modelStatus, solutionStatus, variableType } = highs.constants

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(solve(JSON.parse(line)))}\n`)
}

function solve({ model, timeLimitSeconds, relativeGap }: SolveRequest): SolveAnswer {
  const { columns, binaries } = model
  return highs.withModel(dataOf(model), (one): SolveAnswer => {
    one.options.set({ output_flag: false, time_limit: timeLimitSeconds, mip_rel_gap: relativeGap, mip_abs_gap: 1e-6 })
    const status = one.run().modelStatus
    if (status === modelStatus.infeasible) return { status: 'infeasible' }
    if (Number(one.info.get('primal_solution_status')) !== solutionStatus.feasible) return { status: 'unknown' }
    const { colValue, rowDual } = one.getSolution()
    if (!colValue.every(Number.isFinite) || !rowDual.every(Number.isFinite)) return { status: 'unknown' }
    return {
      status: status === modelStatus.optimal ? 'optimal' : 'feasible',
      values: Array.from(colValue.slice(0, columns), (value, column) =>
        column < binaries ? Math.round(value) : value,
      ),
      prices: binaries === 0 ? Array.from(rowDual) : null,
    }
  })
}

function dataOf({ columns, binaries, objective, rows }: LinearModel) {
  const cost = new Float64Array(columns)
  for (const [column, coefficient] of objective) cost[column] = coefficient
  const starts = [0]
  for (const { terms } of rows) starts.push((starts.at(-1) as number) + terms.length)
  const terms = rows.flatMap((row) => row.terms)
  return {
    numCols: columns,
    numRows: rows.length,
    colCost: cost,
    colLower: new Float64Array(columns),
    colUpper: Float64Array.from({ length: columns }, (_, column) => (column < binaries ? 1 : highs.infinity)),
    rowLower: rows.map(({ equal, atLeast }) => equal ?? atLeast ?? -highs.infinity),
    rowUpper: rows.map(({ equal, atMost }) => equal ?? atMost ?? highs.infinity),
    matrix: {
      format: 'csr' as const,
      numRows: rows.length,
      numCols: columns,
      starts,
      indices: terms.map(([column]) => column),
      values: terms.map(([, coefficient]) => coefficient),
    },
    integrality: Int32Array.from({ length: columns }, (_, column) =>
      column < binaries ? variableType.integer : variableType.continuous,
    ),
  }
}
