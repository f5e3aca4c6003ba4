// Solves linear and integer programs in a separate process, which `assignment.ts` starts with the
// name of an engine. Reads one JSON line per program, and prints one JSON line per answer. A solve
// is synchronous and cannot be stopped from within, so the parent kills the process, and only this
// file loads GLPK or HiGHS.
import { createInterface } from 'node:readline'
import type { LP } from 'glpk.js/node'
import type { EngineName, LinearModel, LpRow, SolveAnswer, SolveRequest } from './assignment.ts'

type Solver = (request: SolveRequest) => SolveAnswer | Promise<SolveAnswer>

// The engines. Only one is loaded, because its start takes most of a short solve. A package without
// GLPK, which has the licence GPL, uses HiGHS.
const solvers: Record<EngineName, () => Promise<Solver>> = {
  glpk: () => startGlpk().catch((error) => (isMissing(error) ? startHighs() : Promise.reject(error))),
  highs: startHighs,
}
const solve = await solvers[process.argv[2] as EngineName]()

for await (const line of createInterface({ input: process.stdin })) {
  const request: SolveRequest = JSON.parse(line)
  process.stdout.write(`${JSON.stringify(await solve(request))}\n`)
}

function isMissing(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_MODULE_NOT_FOUND'
}

async function startGlpk(): Promise<Solver> {
  const glpk = await (await import('glpk.js/node')).default()

  function boundOf({ equal, atMost, atLeast }: LpRow) {
    if (equal !== undefined) return { type: glpk.GLP_FX, lb: equal, ub: equal }
    if (atLeast !== undefined) return { type: glpk.GLP_LO, lb: atLeast, ub: 0 }
    return { type: glpk.GLP_UP, lb: 0, ub: atMost ?? Number.NaN }
  }

  return async ({ model, timeLimitSeconds }) => {
    const { columns, binaries, objective, rows } = model
    const isPlain = binaries === 0
    const lp: LP = {
      name: 'placement',
      objective: { direction: glpk.GLP_MIN, name: 'cost', vars: objective.map(variable) },
      subjectTo: rows.map((row, index) => ({ name: `r${index}`, vars: row.terms.map(variable), bnds: boundOf(row) })),
      binaries: Array.from({ length: binaries }, (_, column) => `x${column}`),
      bounds: Array.from({ length: columns - binaries }, (_, index) => ({
        name: `x${binaries + index}`,
        type: glpk.GLP_LO,
        lb: 0,
        ub: 0,
      })),
    }
    // Disables presolve, which would remove the prices.
    const { result } = await glpk.solve(lp, {
      msglev: glpk.GLP_MSG_OFF,
      presol: !isPlain,
      tmlim: timeLimitSeconds,
    })
    // Trusts only NOFEAS as a proof that there is no solution. UNDEF may also mean a time-out.
    if (result.status === glpk.GLP_NOFEAS) return { status: 'infeasible' }
    if (result.status !== glpk.GLP_OPT && result.status !== glpk.GLP_FEAS) return { status: 'unknown' }
    const values = Array.from({ length: columns }, (_, column) => result.vars[`x${column}`] ?? 0)
    const prices = isPlain ? rows.map((_, index) => result.dual?.[`r${index}`] ?? 0) : null
    if (!values.every(Number.isFinite) || !(prices ?? []).every(Number.isFinite)) return { status: 'unknown' }
    return {
      status: result.status === glpk.GLP_OPT ? 'optimal' : 'feasible',
      values: values.map((value, column) => (column < binaries ? Math.round(value) : value)),
      prices,
    }
  }
}

function variable([column, coef]: [number, number]) {
  return { name: `x${column}`, coef }
}

/** Starts HiGHS, the second engine. */
async function startHighs(): Promise<Solver> {
  const { default: highsModule } = await import('highs')
  // Casts the module: its types are those of CommonJS, but this import returns the function itself.
  const highs = await (highsModule as unknown as typeof highsModule.default)()
  const { modelStatus, solutionStatus, variableType } = highs.constants

  return ({ model, timeLimitSeconds, maxNodes }) => {
    const { columns, binaries } = model
    const types = { binary: variableType.integer, plain: variableType.continuous }
    return highs.withModel(dataOf(model, highs.infinity, types), (one): SolveAnswer => {
      one.options.set({ output_flag: false, time_limit: timeLimitSeconds, mip_rel_gap: 0, mip_abs_gap: 1e-6 })
      if (maxNodes !== undefined) one.options.set({ mip_max_nodes: maxNodes })
      const status = one.run().modelStatus
      if (status === modelStatus.infeasible) return { status: 'infeasible' }
      const { optimal, solutionLimit, iterationLimit } = modelStatus
      const isTimeUp = status !== optimal && status !== solutionLimit && status !== iterationLimit
      if (Number(one.info.get('primal_solution_status')) !== solutionStatus.feasible)
        return { status: 'unknown', isTimeUp }
      const { colValue, rowDual } = one.getSolution()
      if (!colValue.every(Number.isFinite) || !rowDual.every(Number.isFinite)) return { status: 'unknown' }
      return {
        status: status === modelStatus.optimal ? 'optimal' : 'feasible',
        isTimeUp,
        values: Array.from(colValue.slice(0, columns), (value, column) =>
          column < binaries ? Math.round(value) : value,
        ),
        prices: binaries === 0 ? Array.from(rowDual) : null,
      }
    })
  }
}

function dataOf(
  { columns, binaries, objective, rows }: LinearModel,
  infinity: number,
  types: { binary: number; plain: number },
) {
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
    colUpper: Float64Array.from({ length: columns }, (_, column) => (column < binaries ? 1 : infinity)),
    rowLower: rows.map(({ equal, atLeast }) => equal ?? atLeast ?? -infinity),
    rowUpper: rows.map(({ equal, atMost }) => equal ?? atMost ?? infinity),
    matrix: {
      format: 'csr' as const,
      numRows: rows.length,
      numCols: columns,
      starts,
      indices: terms.map(([column]) => column),
      values: terms.map(([, coefficient]) => coefficient),
    },
    integrality: Int32Array.from({ length: columns }, (_, column) => (column < binaries ? types.binary : types.plain)),
  }
}
