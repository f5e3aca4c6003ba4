import type { Instance } from './cluster/instance.ts'
import type { Move } from './search/search.ts'

/** A move, the moves that have to be over before it begins (by position), and the wave in which it can run at the earliest. */
export type Step = Move & { needs: number[]; wave: number }

/**
 * As few needs as keep every interleaving within the rules: a move waits for its own VM's last move, for members of its group
 * that have to leave the domain, and for those departures from its target whose room it is given. Room of departures is given
 * in their order, and a VM that comes to a host later waits for all that was given there before: so that whatever set of moves
 * has begun, the last of them to arrive has waited for the room of all.
 */
export function withNeeds(instance: Instance, moves: readonly Move[]): Step[] {
  const { domain, vmRam, vmCpu, groupsOf } = instance
  const { ram, cpu } = freeRoom(instance)
  /** By host: departures whose room nobody has been given yet, and those whose room somebody has. */
  const departures: number[][] = instance.hostRam.map(() => [])
  const given: number[][] = instance.hostRam.map(() => [])
  const lastMoveOf = new Map<number, number>()
  /** By group and domain: the moves with which members left it. */
  const left = new Map<string, number[]>()
  /** Of each move, all that is over before it begins. */
  const before: Set<number>[] = []
  const steps: Step[] = []
  for (const [index, { vm, from, to }] of moves.entries()) {
    const needs = new Set<number>()
    const over = new Set<number>()
    const waitFor = (need: number) => {
      needs.add(need)
      over.add(need)
      for (const each of before[need]!) over.add(each)
    }
    const give = (departure: number) => {
      departures[to] = departures[to]!.filter((each) => each !== departure)
      given[to]!.push(departure)
      ram[to]! += vmRam[moves[departure]!.vm]!
      cpu[to]! += vmCpu[moves[departure]!.vm]!
    }
    const last = lastMoveOf.get(vm)
    if (last !== undefined) waitFor(last)
    for (const group of groupsOf[vm]!) for (const leaving of left.get(`${group} ${domain[to]}`) ?? []) waitFor(leaving)
    for (const departure of given[to]!) waitFor(departure)
    for (;;) {
      // What is over anyway, for whatever reason, has made its room.
      for (const departure of departures[to]!.filter((each) => over.has(each))) give(departure)
      if (ram[to]! >= vmRam[vm]! && cpu[to]! >= vmCpu[vm]!) break
      const next = departures[to]![0]
      if (next === undefined) throw new Error(`move ${index} has no room on its host`)
      waitFor(next)
    }
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
    before.push(over)
    const wave = 1 + Math.max(0, ...[...needs].map((need) => steps[need]!.wave))
    steps.push({ vm, from, to, needs: [...needs].sort((a, b) => a - b), wave })
  }
  return steps
}

function freeRoom({ hostRam, hostCpu, vmRam, vmCpu, home }: Instance): { ram: number[]; cpu: number[] } {
  const [ram, cpu] = [[...hostRam], [...hostCpu]]
  for (const [vm, host] of home.entries()) {
    if (host < 0) continue
    ram[host]! -= vmRam[vm]!
    cpu[host]! -= vmCpu[vm]!
  }
  return { ram, cpu }
}
