import { isUp } from '../cluster/clock.ts'
import { fewestToMend, misplacedIn, standAgainstRules } from '../cluster/flaws.ts'
import type { Instance } from '../cluster/instance.ts'
import { type Known, migrationsOf, nothingKnown } from '../cluster/known.ts'
import { roomOf } from '../cluster/room.ts'
import { type Move, search } from './search.ts'

/** Hosts fuller than this are relieved, and nobody is brought over it to do so. */
const hotFraction = 0.9
const runsAtMost = 200

type MendOptions = { deadlineMs: number; random: () => number; report: (known: Known) => void }

/**
 * Rebalancing: broken rules are fixed with few migrations, and hosts that are over nine tenths full are relieved where that can
 * be done for all of them. `left`: what stands against a rule after these moves. No moves where nothing is broken or too full.
 */
export function mend(instance: Instance, { deadlineMs, random, report }: MendOptions): Known {
  const known: Known = {
    ...nothingKnown(instance),
    atLeast: fewestToMend(instance),
    left: standAgainstRules(instance, roomOf(instance)),
  }
  const halfway = performance.now() + (deadlineMs - performance.now()) / 2
  const relieved = best(relievedOf(instance), random, halfway)
  const found = relieved?.left.length === 0 ? relieved : best(instance, random, deadlineMs)
  if (!found || found.left.length > known.left.length) return known
  Object.assign(known, found)
  report(known)
  return known
}

type Mended = { moves: Move[]; left: number[] }

/** The run after which least is broken, and of these the one with the fewest moves; null where nothing has to be done. */
function best(instance: Instance, random: () => number, untilMs: number): Mended | null {
  if (victimsOf(instance, random, 0).length === 0) return null
  const fewest = fewestToMend(instance)
  let best: Mended | null = null
  for (let run = 0; run < runsAtMost && !isUp(untilMs); run += 1) {
    const mended = attempt(instance, random, run === 0 ? 0 : 0.3 + 0.7 * random(), untilMs)
    const isFewer = () => migrationsOf(instance, mended.moves) < migrationsOf(instance, (best as Mended).moves)
    const isBetter =
      !best || mended.left.length < best.left.length || (mended.left.length === best.left.length && isFewer())
    if (isBetter) best = mended
    if (best?.left.length === 0 && migrationsOf(instance, best.moves) <= fewest) break
  }
  return best
}

function attempt(instance: Instance, random: () => number, noise: number, untilMs: number): Mended {
  const wanted = victimsOf(instance, random, noise)
  const chosen = new Set(wanted)
  const movable = instance.movable.map((may, vm) => may && !chosen.has(vm))
  const { moves } = search({ ...instance, wanted, movable }, { random, noise, maxMigrations: 20, deadlineMs: untilMs })
  const room = roomOf(instance)
  for (const { vm, to } of moves) room.put(vm, to)
  return { moves, left: standAgainstRules(instance, room) }
}

function relievedOf(instance: Instance): Instance {
  const most = (sizes: readonly number[]) => sizes.map((size) => Math.floor(size * hotFraction))
  return { ...instance, hostRam: most(instance.hostRam), hostCpu: most(instance.hostCpu) }
}

/** Whom to take away so that no rule is broken any more: of each flaw the one whose going wastes least. */
function victimsOf(instance: Instance, random: () => number, noise: number): number[] {
  const { targets, vmRam, vmCpu, hostRam, hostCpu, movable, home } = instance
  const room = roomOf(instance)
  const chosen: number[] = []
  const take = (vm: number) => {
    room.put(vm, -1)
    chosen.push(vm)
  }
  const shaken = (score: number) => score * (1 + noise * (random() - 0.5))
  for (const vm of misplacedIn(instance)) if (movable[vm]) take(vm)
  for (const [vm, host] of home.entries()) {
    while (host >= 0 && room.at[vm]! >= 0) {
      const rival = room.rival(vm, host)
      const [lighter] = [vm, rival]
        .filter((each) => each >= 0 && movable[each])
        .sort((a, b) => shaken(vmRam[a]!) - shaken(vmRam[b]!))
      if (rival < 0 || lighter === undefined) break
      take(lighter)
    }
  }
  for (let host = 0; host < targets; host += 1) {
    while (room.freeRam[host]! < 0 || room.freeCpu[host]! < 0) {
      const size = (vm: number) => vmRam[vm]! / hostRam[host]! + vmCpu[vm]! / hostCpu[host]!
      const covers = (vm: number) => vmRam[vm]! >= -room.freeRam[host]! && vmCpu[vm]! >= -room.freeCpu[host]!
      const guests = room.on[host]!.filter((vm) => movable[vm]).map((vm) => ({
        vm,
        size: shaken(size(vm)),
        covers: covers(vm),
      }))
      // The smallest that is enough; where none is, the largest.
      guests.sort((a, b) => Number(b.covers) - Number(a.covers) || (a.covers ? a.size - b.size : b.size - a.size))
      if (!guests[0]) break
      take(guests[0].vm)
    }
  }
  return chosen
}
