import type { Instance } from './instance.ts'
import type { Move } from './search.ts'

/** A move, the moves that have to be over before it begins (by position), and the wave in which it can run at the earliest. */
export type Step = Move & { needs: number[]; wave: number }

/**
 * As few needs as keep every interleaving within the rules: a move waits for its own VM's last move, for members of its group
 * that have to leave the domain, and for those departures from its target whose room it is given. Room of departures is given
 * in their order, and whoever comes to a host later waits for all that was given there before: so that whatever set of moves
 * has begun, the last of them to arrive has waited for the room of all.
 */
export function withNeeds(instance: Instance, moves: readonly Move[]): Step[] {
  const { hostRam, hostCpu, domain, vmRam, vmCpu, groupsOf, home } = instance
  const ram = [...hostRam]
  const cpu = [...hostCpu]
  for (const [vm, host] of home.entries()) {
    if (host < 0) continue
    ram[host]! -= vmRam[vm]!
    cpu[host]! -= vmCpu[vm]!
  }
  const departures: number[][] = hostRam.map(() => [])
  const given: number[][] = hostRam.map(() => [])
  const lastMoveOf = new Map<number, number>()
  /** By group and domain: the moves with which members left it. */
  const left = new Map<string, number[]>()
  const steps: Step[] = []
  for (const [index, { vm, from, to }] of moves.entries()) {
    const needs = new Set<number>()
    const before = lastMoveOf.get(vm)
    if (before !== undefined) needs.add(before)
    while (ram[to]! < vmRam[vm]! || cpu[to]! < vmCpu[vm]!) {
      const departure = departures[to]!.shift()
      if (departure === undefined) throw new Error(`move ${index} has no room on its host`)
      given[to]!.push(departure)
      ram[to]! += vmRam[moves[departure]!.vm]!
      cpu[to]! += vmCpu[moves[departure]!.vm]!
    }
    for (const departure of given[to]!) needs.add(departure)
    for (const group of groupsOf[vm]!)
      for (const leaving of left.get(`${group} ${domain[to]}`) ?? []) needs.add(leaving)
    needs.delete(index)
    ram[to]! -= vmRam[vm]!
    cpu[to]! -= vmCpu[vm]!
    if (from >= 0) {
      departures[from]!.push(index)
      if (domain[from] !== domain[to]) {
        for (const group of groupsOf[vm]!) {
          const key = `${group} ${domain[from]}`
          left.set(key, [...(left.get(key) ?? []), index])
        }
      }
    }
    lastMoveOf.set(vm, index)
    const wave = 1 + Math.max(0, ...[...needs].map((need) => steps[need]!.wave))
    steps.push({ vm, from, to, needs: [...needs].sort((a, b) => a - b), wave })
  }
  return steps
}
