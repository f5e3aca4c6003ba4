import { assignmentModel } from '../bound/assignment.ts'
import type { Engine } from '../bound/engine.ts'
import { isUp, type Work } from '../cluster/clock.ts'
import type { Instance } from '../cluster/instance.ts'
import { migrationsOf } from '../cluster/known.ts'
import { roomOf } from '../cluster/room.ts'
import { exhaust, isSmall } from './exhaust.ts'
import { type Move, search } from './search.ts'

/** A rule or limit of an instance: the RAM or CPU of a host, a group, a rule about hosts, a wanted VM. */
export type Limit = { kind: 'ram' | 'cpu' | 'group' | 'rule' | 'vm'; index: number }
/** `moves`: the plan that was found after the change. */
export type Repair = Limit & { amount: number | null; migrations: number; moves: Move[] }

/**
 * `isContradictory`: there are no end places that keep every rule; else there may be, and only no order leads there. `core`: limits
 * that cannot all hold, found by leaving out one after the other, so that none of them can be spared; empty when the time did not
 * do. `repairs`: changes of one limit after which a plan was found.
 */
export type Impossible = { isContradictory: boolean; core: Limit[]; repairs: Repair[] }

const columnsAtMost = 3_000
const repairsAtMost = 8
/** One change is tried for some hundredths of a second: in hosts and VMs looked at. */
const workPerChange = 2_000_000
const triesPerChange = 400

/** Why there is no plan for all, and what single change would make one: for some of them (`repairsAtMost`), the first that are found. */
export async function explain(
  instance: Instance,
  left: readonly number[],
  engine: Engine,
  random: () => number,
  deadlineMs: number,
): Promise<Impossible> {
  // What would help matters more to the person on call than why: a part of the time is kept for it.
  const coreUntilMs = performance.now() + (deadlineMs - performance.now()) * 0.6
  // Without whole numbers it is soon told, and what is impossible in parts is impossible.
  const told = (await isContradictory(instance, 'parts'))
    ? ('parts' as const)
    : (await isContradictory(instance, 'whole'))
      ? ('whole' as const)
      : null
  const core = told ? await coreOf(told) : []
  return { isContradictory: told !== null, core, repairs: repairsOf() }

  /** The engine says that not even end places exist. Anything else is no. */
  async function isContradictory(one: Instance, vms: 'whole' | 'parts'): Promise<boolean> {
    const movers = one.movable.flatMap((may, vm) => (may ? [vm] : []))
    if ((movers.length + one.wanted.length) * one.targets > columnsAtMost) return false
    const built = assignmentModel(one, movers, movers.length)
    if (!built) return true
    const model = vms === 'whole' ? built.model : { ...built.model, binaries: 0 }
    const answer = await engine.solve(model, Math.min(500, coreUntilMs - performance.now()))
    return answer.status === 'infeasible'
  }

  async function coreOf(vms: 'whole' | 'parts'): Promise<Limit[]> {
    let kept = limitsOf(instance)
    // Whole families first: mostly one of them alone is the reason.
    for (const kind of ['rule', 'group', 'cpu', 'ram'] as const) {
      const fewer = kept.filter((limit) => limit.kind !== kind)
      if (
        fewer.length < kept.length &&
        (await isContradictory(relaxed(instance, outside(limitsOf(instance), fewer)), vms))
      )
        kept = fewer
    }
    for (const limit of [...kept]) {
      if (isUp(coreUntilMs)) return []
      const fewer = kept.filter((each) => each !== limit)
      if (await isContradictory(relaxed(instance, outside(limitsOf(instance), fewer)), vms)) kept = fewer
    }
    return kept
  }

  function repairsOf(): Repair[] {
    const repairs: Repair[] = []
    const isOver = () => repairs.length >= repairsAtMost || isUp(deadlineMs)
    const candidates = core.length > 0 ? core : limitsOf(instance)
    for (const limit of candidates) {
      if (isOver()) break
      if (limit.kind === 'ram' || limit.kind === 'cpu') {
        for (const amount of amountsOf(limit)) {
          if (isUp(deadlineMs)) break
          const moves = planAfter(grown(instance, limit, amount))
          if (!moves) continue
          repairs.push({ ...limit, amount, migrations: migrationsOf(instance, moves), moves })
          break
        }
      } else {
        const moves = planAfter(relaxed(instance, [limit]))
        if (moves) repairs.push({ ...limit, amount: null, migrations: migrationsOf(instance, moves), moves })
      }
    }
    return repairs
  }

  /** What would have to be added here for one of those that stay down, or for all of them, the least first. */
  function amountsOf({ kind, index: host }: Limit): number[] {
    const { freeRam, freeCpu } = roomOf(instance)
    const [sizes, free] = kind === 'ram' ? [instance.vmRam, freeRam[host]!] : [instance.vmCpu, freeCpu[host]!]
    const missing = left.map((vm) => sizes[vm]! - free)
    missing.push(left.reduce((sum, vm) => sum + sizes[vm]!, -free))
    return [...new Set(missing.filter((each) => each > 0))].sort((a, b) => a - b)
  }

  /** A plan for all that was found in a moment; null where none was. */
  function planAfter(one: Instance): Move[] | null {
    if (isSmall(one)) {
      const tried = exhaust(one, 20_000, deadlineMs)
      if (tried.kind === 'fewest') return tried.moves
      if (tried.kind === 'none') return null
    }
    const work: Work = { left: workPerChange }
    for (let run = 0; run < triesPerChange && work.left > 0 && !isUp(deadlineMs); run += 1) {
      const found = search(one, { random, noise: run === 0 ? 0 : 0.6, maxMigrations: 12, deadlineMs, work })
      if (found.left.length === 0) return found.moves
    }
    return null
  }
}

function outside(all: readonly Limit[], kept: readonly Limit[]): Limit[] {
  const inside = new Set(kept.map(({ kind, index }) => `${kind} ${index}`))
  return all.filter(({ kind, index }) => !inside.has(`${kind} ${index}`))
}

function limitsOf({ targets, groupsOf, wanted, rule, allows }: Instance): Limit[] {
  const hosts = Array.from({ length: targets }, (_, index) => index)
  const groups = new Set(wanted.flatMap((vm) => groupsOf[vm]!))
  const rules = new Set(wanted.map((vm) => rule[vm]!).filter((each) => allows[each]!.includes(false)))
  return [
    ...[...rules].map((index): Limit => ({ kind: 'rule', index })),
    ...[...groups].map((index): Limit => ({ kind: 'group', index })),
    ...hosts.map((index): Limit => ({ kind: 'cpu', index })),
    ...hosts.map((index): Limit => ({ kind: 'ram', index })),
    // The least important last, so that these are what is kept, if something has to be.
    ...wanted.map((index): Limit => ({ kind: 'vm', index })),
  ]
}

/** The instance without these limits. */
function relaxed(instance: Instance, without: readonly Limit[]): Instance {
  const dropped = (kind: Limit['kind']) =>
    new Set(without.filter((each) => each.kind === kind).map(({ index }) => index))
  const [ram, cpu, groups, rules, vms] = [
    dropped('ram'),
    dropped('cpu'),
    dropped('group'),
    dropped('rule'),
    dropped('vm'),
  ]
  const all = (sizes: readonly number[]) => sizes.reduce((sum, size) => sum + size, 1)
  return {
    ...instance,
    hostRam: instance.hostRam.map((own, host) => (ram.has(host) ? own + all(instance.vmRam) : own)),
    hostCpu: instance.hostCpu.map((own, host) => (cpu.has(host) ? own + all(instance.vmCpu) : own)),
    groupsOf: instance.groupsOf.map((own) => own.filter((group) => !groups.has(group))),
    allows: instance.allows.map((row, rule) => (rules.has(rule) ? row.map(() => true) : row)),
    wanted: instance.wanted.filter((vm) => !vms.has(vm)),
  }
}

function grown(instance: Instance, { kind, index }: Limit, amount: number): Instance {
  const more = (sizes: readonly number[]) => sizes.map((own, host) => (host === index ? own + amount : own))
  return kind === 'ram'
    ? { ...instance, hostRam: more(instance.hostRam) }
    : { ...instance, hostCpu: more(instance.hostCpu) }
}
