import type { PlacementProblem } from '../../domain/placement.ts'

/**
 * The fewest live migrations of any executable plan in which each VM moves at most once, by trying every sequence; null when
 * there is none. For tiny recoveries only, and in nothing like the solver's way.
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
    return ram <= target.ramMib && cpu <= target.cpuMc
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

  const within = (left: number, moved: Set<string>): boolean => {
    if (startAll(0)) return true
    if (left === 0) return false
    for (const name of movable) {
      if (moved.has(name)) continue
      const from = place.get(name)!
      for (const target of hosts) {
        if (target.name === from || !fits(name, target.name)) continue
        place.set(name, target.name)
        const done = within(left - 1, new Set([...moved, name]))
        place.set(name, from)
        if (done) return true
      }
    }
    return false
  }
  for (let count = 0; count <= movable.length; count++) if (within(count, new Set())) return count
  return null
}
