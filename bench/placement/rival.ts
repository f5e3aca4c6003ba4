import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { GoingUnit, World } from './world.ts'

/** CP-SAT, where somebody has installed it. */

const venv = fileURLToPath(new URL('../../.cache/ortools', import.meta.url))
export const howToInstall = 'no CP-SAT (python3 -m venv .cache/ortools && .cache/ortools/bin/pip install ortools)'

/** A Python that has OR-Tools: `PYTHON`, else the one in the cache. */
export function findPython(): string | null {
  const own = `${venv}/bin/python`
  const asked = process.env.PYTHON ?? (existsSync(own) ? own : 'python3')
  return spawnSync(asked, ['-c', 'import ortools.sat.python.cp_model']).status === 0 ? asked : null
}

/**
 * `TRIAGE`: whom it leaves down, `proved` where each level is. `place`: a host by number of each
 * unit, -1 where down; `alone`: the same with nothing moved.
 */
export type CpSatAnswer = {
  status: string
  place?: number[] | null
  proved?: boolean
  alone?: number[] | null
  cpu: number
}

export function askCpSat(
  python: string,
  world: World,
  asked: { ask: 'whole' | 'stages'; triage: boolean; seconds: number },
): CpSatAnswer {
  const script = fileURLToPath(new URL('./cp_sat.py', import.meta.url))
  const numbers = ({ ram, cpu, stranded, home, may, groups, weight, priorities }: GoingUnit) => {
    return { ram, cpu, stranded, home, may, groups, weight, priorities }
  }
  const input = JSON.stringify({ ...world, hosts: undefined, units: world.units.map(numbers), ...asked })
  const { stdout, stderr } = spawnSync(python, [script], { input, encoding: 'utf8', maxBuffer: 1e8 })
  if (!stdout) throw new Error(`CP-SAT failed: ${stderr.slice(-500)}`)
  return JSON.parse(stdout)
}
