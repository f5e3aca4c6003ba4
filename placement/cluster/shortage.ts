import type { PlacementProblem } from '../../domain/placement.ts'
import { describeGroup, type PlacementModel, usableCapacity } from './instance.ts'

/** Why there can be no place for all, where a sum shows it; null when it takes a solver to tell. */
export function findShortage(problem: PlacementProblem, situation: PlacementModel): string | null {
  const { targets, evacuees } = situation
  if (evacuees.length === 0) return null
  if (targets.length === 0) return 'no live host is left to take a VM'
  return (
    findOversizedGroup(problem, situation) ??
    findTotalShortage(problem, situation) ??
    findCrowdedGroup(problem, situation)
  )
}

function findOversizedGroup(problem: PlacementProblem, { targets, evacuees }: PlacementModel): string | null {
  for (const unit of evacuees) {
    const open = targets.filter(unit.mayGoTo)
    if (open.length === 0) return `${describeGroup(unit)} may run on no live host: its pins, region or group leave none`
    const rooms = open.map((host) => usableCapacity(problem, host))
    if (rooms.some(({ ramMib, cpuMc }) => ramMib >= unit.ramMib && cpuMc >= unit.cpuMc)) continue
    const [ramMib, cpuMc] = [
      Math.max(...rooms.map((room) => room.ramMib)),
      Math.max(...rooms.map((room) => room.cpuMc)),
    ]
    const needs = `${describeGroup(unit)} needs ${unit.ramMib} MiB and ${unit.cpuMc} mCPU`
    return `${needs}; no live host is that large, even empty (at most ${ramMib} MiB and ${cpuMc} mCPU)`
  }
  return null
}

function findTotalShortage(
  problem: PlacementProblem,
  { targets, evacuees, movable, fixed }: PlacementModel,
): string | null {
  for (const [size, word, unit] of [
    ['ramMib', 'RAM', 'MiB'],
    ['cpuMc', 'CPU', 'mCPU'],
  ] as const) {
    const used = new Map<string, number>()
    for (const { host, ...own } of [...movable, ...fixed]) {
      if (host !== null) used.set(host, (used.get(host) ?? 0) + own[size])
    }
    // A host that is already too full lends nothing, and takes nothing from the others either.
    const free = targets.reduce(
      (sum, host) => sum + Math.max(0, usableCapacity(problem, host)[size] - (used.get(host.name) ?? 0)),
      0,
    )
    const needed = evacuees.reduce((sum, each) => sum + each[size], 0)
    if (needed > free) return `${word} is short by ${needed - free} ${unit} in total`
  }
  return null
}

function findCrowdedGroup(
  problem: PlacementProblem,
  { targets, evacuees, movable, fixed, domainOf }: PlacementModel,
): string | null {
  const domains = new Set(targets.map(({ name }) => domainOf.get(name)))
  const running = [...movable, ...fixed].flatMap(({ vms }) => vms)
  const evacueeVms = evacuees.flatMap(({ vms }) => vms)
  for (const group of new Set(evacueeVms.map(({ haGroup }) => haGroup))) {
    if (group === null) continue
    const here = running.filter(({ haGroup }) => haGroup === group)
    const taken = new Set(here.map(({ host }) => domainOf.get(host ?? '')))
    const members = evacueeVms.filter(({ haGroup }) => haGroup === group).length + taken.size
    const available = new Set([...domains, ...taken]).size
    if (members <= available) continue
    const kind = problem.useRackConstraints ? 'racks' : 'hosts'
    return `HA group ${group} has ${members} members to keep apart and there are ${available} live ${kind}`
  }
  return null
}
