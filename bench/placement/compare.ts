import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { assignmentModel } from '../../placement/bound/assignment.ts'
import { type EngineName, startEngine } from '../../placement/bound/engine.ts'
import { buildInstance, buildModel, type Instance } from '../../placement/cluster/instance.ts'
import { solve } from '../../placement/solve.ts'
import { type Family, generate, nameOf } from './clusters.ts'
import { loads } from './families.ts'

const limitMs = 10_000
const python = process.env.PYTHON ?? 'python3'

/**
 * The one large model of every VM and host, as others solve it, beside the stages: the fewest migrations to any end places within
 * the same ten seconds. Only the last column can be carried out: the others know no order.
 */
export async function compare(): Promise<void> {
  const hasCpSat = spawnSync(python, ['-c', 'import ortools']).status === 0
  console.log(
    `\nplacement: fewest migrations found (* proved), seconds; ${hasCpSat ? 'CP-SAT with 2 workers' : `no OR-Tools in ${python}`}`,
  )
  console.log(
    ['instance'.padEnd(18), 'GLPK', 'HiGHS', 'CP-SAT', 'stages, in an order'].map((each) => each.padEnd(14)).join(''),
  )
  for (const [hosts, vms, racks] of [
    [10, 100, null],
    [20, 300, null],
    [20, 300, 5],
    [50, 1_000, null],
    [100, 2_000, null],
  ] as const) {
    for (const load of loads) {
      const family: Family = { hosts, vms, racks, load, seed: 1 }
      const problem = generate(family)
      const { instance } = buildInstance(problem, buildModel(problem))
      const cells = [await whole(instance, 'glpk'), await whole(instance, 'highs'), hasCpSat ? cpSat(instance) : '-']
      const began = performance.now()
      const plan = await solve(problem, { timeoutMs: limitMs })
      const isProved = plan.state === 'planned' && plan.migrations === plan.lowerBound
      const bound = isProved ? '*' : ` [${plan.lowerBound}]`
      cells.push(`${plan.state === 'planned' ? plan.migrations : plan.state}${bound} ${seconds(began)}`)
      console.log([nameOf(family).padEnd(18), ...cells].map((each) => each.padEnd(14)).join(''))
    }
  }
}

async function whole(instance: Instance, name: EngineName): Promise<string> {
  const movers = instance.movable.flatMap((may, vm) => (may ? [vm] : []))
  const engine = startEngine(name)
  const began = performance.now()
  const built = assignmentModel(instance, movers, movers.length)
  const answer = built ? await engine.solve(built.model, limitMs) : ({ status: 'infeasible' } as const)
  engine.stop()
  if (answer.status !== 'optimal' && answer.status !== 'feasible')
    return `${answer.status === 'unknown' ? 'none' : answer.status} ${seconds(began)}`
  const stayed = built!.columns.filter(
    ([vm, host], column) => answer.values[column] === 1 && instance.movable[vm] && instance.home[vm] === host,
  )
  return `${movers.length - stayed.length}${answer.status === 'optimal' ? '*' : ''} ${seconds(began)}`
}

function cpSat(instance: Instance): string {
  const began = performance.now()
  const script = fileURLToPath(new URL('./cp_sat.py', import.meta.url))
  const { stdout } = spawnSync(python, [script], { input: JSON.stringify(instance), encoding: 'utf8', maxBuffer: 1e8 })
  const { status, migrations } = JSON.parse(stdout || '{"status":"failed"}') as { status: string; migrations?: number }
  if (migrations === undefined) return `${status === 'UNKNOWN' ? 'none' : status} ${seconds(began)}`
  return `${migrations}${status === 'OPTIMAL' ? '*' : ''} ${seconds(began)}`
}

function seconds(beganMs: number): string {
  return ((performance.now() - beganMs) / 1_000).toFixed(1)
}
