import type { PlacementProblem, Plan, Triage, TriageLevel } from '../domain/placement.ts'
import type { ProvedLevel } from './bound/triage-bound.ts'
import type { Instance, Names } from './cluster/instance.ts'
import { listUnplaced } from './plan.ts'
import type { Incumbent } from './search/exhaust.ts'
import { describeClass, findTriageFault } from './triage-certificate.ts'

/**
 * Returns the proof that no other choice of VMs to leave down does less harm than this plan.
 * Undefined without a proof. Checks certificates here, and drops a wrong certificate. Valid only
 * for the last plan of the search.
 */
export function toTriage(
  problem: PlacementProblem,
  instance: Instance,
  names: Names,
  { known, down }: { known: Incumbent; down: Plan['unplaced'] },
): Triage | undefined {
  const isDown = new Set(down.map(({ vm }) => vm))
  const told = listUnplaced(names, known.unplaced, instance)
  if (problem.intent === 'rebalance' || isDown.size === 0) return undefined
  if (told.length !== isDown.size || told.some(({ vm }) => !isDown.has(vm))) return undefined
  const given = (known.levels ?? []).map((level) => toLevel(instance, names, level))
  const levels = given.length > 0 && findTriageFault(problem, [...isDown], given) === null ? given : []
  const isAll = new Set(down.map(({ priority }) => priority)).size === levels.length
  if (!isAll && known.triage === 'exhausted') return { proof: 'exhausted' }
  if (!isAll && known.triage === 'engine') return { proof: 'engine', ...(levels.length > 0 && { levels }) }
  return levels.length > 0 ? { proof: 'certificate', levels } : undefined
}

function toLevel(instance: Instance, names: Names, level: ProvedLevel): TriageLevel {
  const { targets, vmRam, vmCpu, priorities, movable, home, rule, allows } = instance
  const { priority, down, scale, units, weights } = level
  const price: Record<string, number> = {}
  for (const [vm, value] of level.price.entries()) {
    if (value === 0) continue
    const open = allows[rule[vm]!]!.flatMap((may, host) => (may || (movable[vm] && home[vm] === host) ? [host] : []))
    const key = describeClass({
      ram: vmRam[vm]!,
      cpu: vmCpu[vm]!,
      priorities: movable[vm] ? [] : [...priorities[vm]!].sort((a, b) => b - a),
      on: open.length === targets ? null : open.map((host) => names.hosts[host]!).sort(),
    })
    price[key] = value
  }
  const [ramUnit, cpuUnit] = units
  return { priority, down, scale, ramUnit, cpuUnit, weights: toKeys(weights), price }
}

function toKeys(weights: Record<number, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(weights).filter(([, weight]) => weight > 0))
}
