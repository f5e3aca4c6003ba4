import type { PlacementProblem } from '../../domain/placement.ts'

/**
 * The fewest live migrations of any executable plan, by looking at every state that migrations can lead to, nearest first; null
 * when there is none. For tiny recoveries only, and in nothing like the solver's way.
 */
export function fewestMigrations(problem: PlacementProblem): number | null {
  const hosts = problem.hosts.filter((one) => one.state === 'live' && !problem.hostIds.includes(one.name))
  const domain = (name: string | null) => {
    const found = problem.hosts.find((one) => one.name === name)
    return problem.useRackConstraints && found?.rack ? `rack:${found.rack}` : name
  }
  const isDead = (name: string | null) => problem.hosts.some((one) => one.name === name && one.state === 'dead')
  const stranded = problem.vms.filter((one) => problem.hostIds.includes(one.host ?? '') && isDead(one.host))
  const place = new Map(
    problem.vms.filter((one) => one.running && !isDead(one.host)).map((one) => [one.vm, one.host as string]),
  )
  const movable = [...place.keys()].filter((name) => hosts.some((one) => one.name === place.get(name)))

  const fits = (name: string, to: string) => {
    const self = problem.vms.find((one) => one.vm === name)!
    const target = hosts.find((one) => one.name === to)!
    if (self.pinnedTo.length > 0 && !self.pinnedTo.includes(to)) return false
    if (self.forbiddenHosts.includes(to)) return false
    let [ram, cpu] = [self.ramMib, self.cpuMc]
    for (const other of problem.vms) {
      const at = place.get(other.vm)
      if (at === undefined || other.vm === name) continue
      if (at === to) {
        ram += other.ramMib
        cpu += other.cpuMc
      }
      if (self.haGroup !== null && other.haGroup === self.haGroup && domain(at) === domain(to)) return false
    }
    const { ramReservePercent, cpuOvercommitPercent } = problem.limits
    const [mostRam, mostCpu] = [
      target.ramMib * (1 - ramReservePercent / 100),
      (target.cpuMc * cpuOvercommitPercent) / 100,
    ]
    return ram <= mostRam && cpu <= mostCpu
  }

  /** Can the stranded be started now, in the given order of names? Starts only take room, so their order is free. */
  const startAll = (index: number): boolean => {
    const next = stranded[index]
    if (!next) return true
    for (const { name } of hosts) {
      if (!fits(next.vm, name)) continue
      place.set(next.vm, name)
      const done = startAll(index + 1)
      place.delete(next.vm)
      if (done) return true
    }
    return false
  }

  const seen = new Set<string>()
  let states = [movable.map((name) => place.get(name) as string)]
  for (let count = 0; states.length > 0; count += 1) {
    const next: string[][] = []
    for (const state of states) {
      for (const [index, name] of movable.entries()) place.set(name, state[index]!)
      if (startAll(0)) return count
      for (const [index, name] of movable.entries()) {
        for (const target of hosts) {
          if (target.name === state[index] || !fits(name, target.name)) continue
          const reached = state.with(index, target.name)
          if (seen.has(reached.join())) continue
          seen.add(reached.join())
          next.push(reached)
        }
      }
    }
    states = next
  }
  return null
}
