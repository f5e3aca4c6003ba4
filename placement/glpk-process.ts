// A process of its own, started by `placement/glpk.ts`: one JSON line in, one out. It knows linear programs and nothing
// else. It is the only file that loads GLPK: a solve is synchronous and cannot be stopped from within, so the parent kills.
import { createInterface } from 'node:readline'
import startGlpk, { type LP } from 'glpk.js/node'
import type { SolveAnswer, SolveRequest } from './linear-model.ts'

const glpk = await startGlpk()

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(solve(JSON.parse(line)))}\n`)
}

function solve({ model, timeLimitSeconds, relativeGap }: SolveRequest): SolveAnswer {
  const columns = model.binaries + (model.hasLevel ? 1 : 0)
  const lp: LP = {
    name: 'placement',
    objective: { direction: glpk.GLP_MIN, name: 'cost', vars: model.objective.map(variable) },
    subjectTo: model.rows.map(({ terms, equal, atMost }, index) => ({
      name: `r${index}`,
      vars: terms.map(variable),
      bnds:
        equal !== undefined
          ? { type: glpk.GLP_FX, lb: equal, ub: equal }
          : { type: glpk.GLP_UP, lb: 0, ub: atMost ?? Number.NaN },
    })),
    binaries: Array.from({ length: model.binaries }, (_, column) => `x${column}`),
    bounds: model.hasLevel ? [{ name: `x${model.binaries}`, type: glpk.GLP_LO, lb: 0, ub: 0 }] : [],
  }
  const { result } = glpk.solve(lp, {
    msglev: glpk.GLP_MSG_OFF,
    presol: true,
    tmlim: timeLimitSeconds,
    mipgap: relativeGap,
  })
  // With presolve, only NOFEAS proves anything: UNDEF is also a time-out.
  if (result.status === glpk.GLP_NOFEAS) return { status: 'infeasible' }
  if (result.status !== glpk.GLP_OPT && result.status !== glpk.GLP_FEAS) return { status: 'unknown' }
  const values = Array.from({ length: columns }, (_, column) => result.vars[`x${column}`] ?? 0)
  if (!values.every(Number.isFinite)) return { status: 'unknown' }
  return {
    status: result.status === glpk.GLP_OPT ? 'optimal' : 'feasible',
    values: values.map((value, column) => (column < model.binaries ? Math.round(value) : value)),
  }
}

function variable([column, coef]: [number, number]) {
  return { name: `x${column}`, coef }
}
