import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { GoingUnit, World } from './world.ts'

/** The Python environment that contains CP-SAT, if installed. */

const venv = fileURLToPath(new URL('../../.cache/ortools', import.meta.url))
export const howToInstall = 'no CP-SAT (python3 -m venv .cache/ortools && .cache/ortools/bin/pip install ortools)'

/**
 * Returns the Python in `PYTHON`, or else in the cache, or else `python3`. Null if it lacks
 * OR-Tools.
 */
export function findPython(): string | null {
  const own = `${venv}/bin/python`
  const asked = process.env.PYTHON ?? (existsSync(own) ? own : 'python3')
  return spawnSync(asked, ['-c', 'import ortools.sat.python.cp_model']).status === 0 ? asked : null
}

/**
 * The response of CP-SAT. The status `TRIAGE` means that some VMs stay down; `proved` tells whether
 * the result is proved to be the best at each priority. `place`: the host number of each unit, -1
 * if down. `alone`: the host numbers if no running VM is moved.
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
