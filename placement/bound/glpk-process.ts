// A separate process, started by `engine.ts`: one JSON line in, one out. It knows linear programs and nothing
// else. It is the only file that loads GLPK: a solve is synchronous and cannot be stopped from within, so the parent kills.
import { createInterface } from 'node:readline'
import startGlpk, { type LP } from 'glpk.js/node'
import type { Row, SolveAnswer, SolveRequest } from './assignment.ts'

const glpk = await startGlpk()

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await solve(JSON.parse(line)))}\n`)
}

async function solve({ model, timeLimitSeconds, relativeGap }: SolveRequest): Promise<SolveAnswer> {
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
  // Presolve would take the prices away.
  const { result } = await glpk.solve(lp, {
    msglev: glpk.GLP_MSG_OFF,
    presol: !isPlain,
    tmlim: timeLimitSeconds,
    mipgap: relativeGap,
  })
  // Only NOFEAS proves anything: UNDEF is also a time-out.
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

function boundOf({ equal, atMost, atLeast }: Row) {
  if (equal !== undefined) return { type: glpk.GLP_FX, lb: equal, ub: equal }
  if (atLeast !== undefined) return { type: glpk.GLP_LO, lb: atLeast, ub: 0 }
  return { type: glpk.GLP_UP, lb: 0, ub: atMost ?? Number.NaN }
}

function variable([column, coef]: [number, number]) {
  return { name: `x${column}`, coef }
}
