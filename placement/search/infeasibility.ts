import type { SolverEngine } from '../bound/assignment.ts'
import { buildWholeModel } from '../bound/places-model.ts'
import { type Instance, listMovable, listTargets } from '../cluster/instance.ts'
import { buildCapacityState, isUp, type SearchBudget } from '../cluster/size-classes.ts'
import { countMigrations, exhaust, isSmall } from './exhaust.ts'
import { type Move, search } from './search.ts'

/**
 * A rule or limit of an instance: a host's RAM or CPU, an HA group, a rule about hosts, an evacuee.
 */
export type InstanceLimit = { kind: 'ram' | 'cpu' | 'group' | 'rule' | 'vm'; index: number }
/**
 * A change of one limit that makes a plan possible. `moves` is the plan that was found after the
 * change.
 */
export type Repair = InstanceLimit & { amount: number | null; migrations: number; moves: Move[] }

/**
 * Why no plan places all VMs. `isContradictory`: no final hosts keep every rule; otherwise some
 * may, but no order was found. `core`: limits that cannot all hold, reduced one by one until each
 * is needed; empty if time ran out. `repairs`: changes of one limit after which a plan was found.
 */
export type Infeasibility = { isContradictory: boolean; core: InstanceLimit[]; repairs: Repair[] }

const maxColumns = 3_000
const maxRepairs = 8
/** Work for trying one change, some hundredths of a second, in examined hosts and VMs. */
const workPerChange = 2_000_000
const triesPerChange = 400

type Diagnosis = {
  instance: Instance
  unplaced: readonly number[]
  engine: SolverEngine
  random: () => number
  deadlineMs: number
  /** The time at which the search for the core ends. */
  coreUntilMs: number
}

/** How a VM is placed: split over several hosts, or as a whole on one host. */
type Relaxation = 'parts' | 'whole'

/**
 * Explains why no plan places all VMs, and which single changes allow such a plan: the first
 * `maxRepairs` that are found.
 */
export async function explainInfeasibility(
  instance: Instance,
  unplaced: readonly number[],
  engine: SolverEngine,
  random: () => number,
  deadlineMs: number,
): Promise<Infeasibility> {
  // Keeps a part of the time for repairs, because repairs help a person on call more than the
  // reason.
  const coreUntilMs = performance.now() + (deadlineMs - performance.now()) * 0.6
  const diagnosis = { instance, unplaced, engine, random, deadlineMs, coreUntilMs }
  const relaxation = await findContradiction(diagnosis)
  const core = relaxation ? await findCore(diagnosis, relaxation) : []
  return { isContradictory: relaxation !== null, core, repairs: findRepairs(diagnosis, core) }
}

/**
 * Tries split VMs first, which is fast. A problem that is impossible with split VMs is also
 * impossible with whole VMs.
 */
async function findContradiction(diagnosis: Diagnosis): Promise<Relaxation | null> {
  if (await isContradictory(diagnosis, diagnosis.instance, 'parts')) return 'parts'
  return (await isContradictory(diagnosis, diagnosis.instance, 'whole')) ? 'whole' : null
}

/** Whether the engine proves that no final hosts exist. No other answer counts as a proof. */
async function isContradictory(
  { engine, coreUntilMs }: Diagnosis,
  instance: Instance,
  relaxation: Relaxation,
): Promise<boolean> {
  const movers = listMovable(instance)
  if ((movers.length + instance.evacuees.length) * instance.targets > maxColumns) return false
  const built = buildWholeModel(instance, movers, movers.length)
  if (!built) return true
  const model = relaxation === 'whole' ? built.model : { ...built.model, binaries: 0 }
  const answer = await engine.solve(model, Math.min(500, coreUntilMs - performance.now()))
  return answer.status === 'infeasible'
}

async function findCore(diagnosis: Diagnosis, relaxation: Relaxation): Promise<InstanceLimit[]> {
  const { instance, coreUntilMs } = diagnosis
  const all = listLimits(instance)
  const isEnough = (limits: readonly InstanceLimit[]) =>
    isContradictory(diagnosis, relax(instance, exclude(all, limits)), relaxation)
  let kept = all
  // Drops complete kinds of limits first, because usually only one kind is the reason.
  for (const kind of ['rule', 'group', 'cpu', 'ram'] as const) {
    const fewer = kept.filter((limit) => limit.kind !== kind)
    if (fewer.length < kept.length && (await isEnough(fewer))) kept = fewer
  }
  for (const limit of [...kept]) {
    if (isUp(coreUntilMs)) return []
    const fewer = kept.filter((each) => each !== limit)
    if (await isEnough(fewer)) kept = fewer
  }
  return kept
}

function findRepairs(diagnosis: Diagnosis, core: readonly InstanceLimit[]): Repair[] {
  const { instance, deadlineMs } = diagnosis
  const repairs: Repair[] = []
  for (const limit of core.length > 0 ? core : listLimits(instance)) {
    if (repairs.length >= maxRepairs || isUp(deadlineMs)) break
    const repair =
      limit.kind === 'ram' || limit.kind === 'cpu' ? findGrowth(diagnosis, limit) : findRelaxation(diagnosis, limit)
    if (repair) repairs.push(repair)
  }
  return repairs
}

/** Finds the smallest addition to a host's capacity with which a plan exists. */
function findGrowth(diagnosis: Diagnosis, limit: InstanceLimit): Repair | null {
  for (const amount of listAmounts(diagnosis, limit)) {
    if (isUp(diagnosis.deadlineMs)) break
    const moves = findPlan(diagnosis, grow(diagnosis.instance, limit, amount))
    if (moves) return { ...limit, amount, migrations: countMigrations(diagnosis.instance, moves), moves }
  }
  return null
}

function findRelaxation(diagnosis: Diagnosis, limit: InstanceLimit): Repair | null {
  const moves = findPlan(diagnosis, relax(diagnosis.instance, [limit]))
  return moves && { ...limit, amount: null, migrations: countMigrations(diagnosis.instance, moves), moves }
}

/** Lists the capacity that this host lacks for each unplaced VM and for all, the least first. */
function listAmounts({ instance, unplaced }: Diagnosis, { kind, index: host }: InstanceLimit): number[] {
  const { freeRam, freeCpu } = buildCapacityState(instance)
  const [sizes, free] = kind === 'ram' ? [instance.vmRam, freeRam[host]!] : [instance.vmCpu, freeCpu[host]!]
  const missing = unplaced.map((vm) => sizes[vm]! - free)
  missing.push(unplaced.reduce((sum, vm) => sum + sizes[vm]!, -free))
  return [...new Set(missing.filter((each) => each > 0))].sort((a, b) => a - b)
}

/** Searches a plan for all VMs for a short time. Null if no plan was found. */
function findPlan({ random, deadlineMs }: Diagnosis, instance: Instance): Move[] | null {
  if (isSmall(instance)) {
    const result = exhaust(instance, 20_000, deadlineMs)
    if (result.kind === 'fewest') return result.moves
    if (result.kind === 'none') return null
  }
  const work: SearchBudget = { left: workPerChange }
  for (let run = 0; run < triesPerChange && work.left > 0 && !isUp(deadlineMs); run += 1) {
    const found = search(instance, { random, noise: run === 0 ? 0 : 0.6, maxMigrations: 12, deadlineMs, work })
    if (found.unplaced.length === 0) return found.moves
  }
  return null
}

function exclude(all: readonly InstanceLimit[], kept: readonly InstanceLimit[]): InstanceLimit[] {
  const inside = new Set(kept.map(({ kind, index }) => `${kind} ${index}`))
  return all.filter(({ kind, index }) => !inside.has(`${kind} ${index}`))
}

function listLimits(instance: Instance): InstanceLimit[] {
  const { groupsOf, evacuees, rule, allows } = instance
  const hosts = listTargets(instance)
  const groups = new Set(evacuees.flatMap((vm) => groupsOf[vm]!))
  const rules = new Set(evacuees.map((vm) => rule[vm]!).filter((each) => allows[each]!.includes(false)))
  return [
    ...[...rules].map((index): InstanceLimit => ({ kind: 'rule', index })),
    ...[...groups].map((index): InstanceLimit => ({ kind: 'group', index })),
    ...hosts.map((index): InstanceLimit => ({ kind: 'cpu', index })),
    ...hosts.map((index): InstanceLimit => ({ kind: 'ram', index })),
    // Lists evacuees last, the least important at the end, so that these stay in the core if they
    // are needed.
    ...evacuees.map((index): InstanceLimit => ({ kind: 'vm', index })),
  ]
}

/** Returns the instance without these limits. */
function relax(instance: Instance, without: readonly InstanceLimit[]): Instance {
  const dropped = (kind: InstanceLimit['kind']) =>
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
    evacuees: instance.evacuees.filter((vm) => !vms.has(vm)),
  }
}

function grow(instance: Instance, { kind, index }: InstanceLimit, amount: number): Instance {
  const more = (sizes: readonly number[]) => sizes.map((own, host) => (host === index ? own + amount : own))
  return kind === 'ram'
    ? { ...instance, hostRam: more(instance.hostRam) }
    : { ...instance, hostCpu: more(instance.hostCpu) }
}
