import { capitalize, formatCount, formatList } from './format.ts'
import type { Loss, Plan, PlanForecast, PlanProof, Standing, Triage, TriageTold, Unplaced } from './placement.ts'

const proofWords: Record<PlanProof['kind'], string> = {
  trivial: '',
  exhausted: 'every possibility was tried',
  engine: "a solver's claim, not checked",
  certificate: 'certificate',
}

type PlanCounts = { [key in 'state' | 'migrations' | 'lowerBound']?: Plan[key] | undefined }

/**
 * Formats the number of migrations and the kind of its proof: `2 migrations, and no plan needs
 * fewer (certificate)`. Shows no proof for plans of older releases, which have none.
 */
export function formatPlanProof(
  { state, migrations, lowerBound = 0 }: PlanCounts,
  proof: PlanProof | PlanProof['kind'] = 'trivial',
): string {
  if (migrations === undefined) return ''
  const count = formatCount(migrations, 'migration')
  if (migrations === 0 || state !== 'planned') return count
  const by = formatProofKind(proof)
  const shown = by === '' ? '' : ` (${by})`
  if (lowerBound >= migrations) return `${count}, and no plan needs fewer${shown}`
  if (lowerBound === 0) return `${count}; whether fewer are enough is not known`
  return `${count}; at least ${lowerBound} are needed${shown}, whether fewer than ${migrations} are enough is not known`
}

/** Formats how many VMs stay down: `2 VMs stay down`. */
export function formatDown(count: number): string {
  return `${formatCount(count, 'VM')} ${count === 1 ? 'stays' : 'stay'} down`
}

/**
 * Formats `vm-101 (priority 100) stays down while VMs of lower priority get a place`, with the name
 * of the VM with the highest priority. Empty for plans of 0.1.0, which lack the data.
 */
export function formatOvertaken(unplaced: readonly Unplaced[]): string[] {
  const overtaken = unplaced.filter(({ overtakenBy = [] }) => overtakenBy.length > 0)
  const [first] = overtaken.sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0))
  if (!first) return []
  const more = overtaken.length > 1 ? ` and ${overtaken.length - 1} more` : ''
  const stay = overtaken.length > 1 ? 'stay' : 'stays'
  return [`${first.vm} (priority ${first.priority ?? 0})${more} ${stay} down while VMs of lower priority get a place`]
}

const triageWords: Record<TriageTold['proof'], string> = {
  certificate: 'certificate',
  engine: "a solver's claim, not checked",
  exhausted: 'every possibility was tried',
}

/** Describes which VMs the platform starts by itself, and which VMs have no room. */
export function formatForecast({ restarts, staysDown }: PlanForecast, migrations: number): string[] {
  const many = (vms: readonly string[]) =>
    vms.length > 8 ? `${vms.slice(0, 8).join(', ')} and ${vms.length - 8} more` : formatList(vms)
  const room = migrations > 0 ? `after ${formatCount(migrations, 'migration')}` : 'without migrations'
  return [
    ...(restarts.length > 0
      ? [
          `The platform fences the dead host and starts ${many(restarts)} by itself, on hosts that it chooses. The hosts in the plan are a forecast: another host within the rules counts as done. Nightshift starts none of these VMs.`,
        ]
      : []),
    staysDown.length === 0
      ? `According to the plan all these VMs fit ${room}.`
      : `VMs that will not fit: ${many(staysDown)}. The platform may start them before more important VMs.`,
  ]
}

/** Reads the forecast of a dry run; null if the platform does nothing by itself. */
export function readForecast({ forecast }: Record<string, unknown>): PlanForecast | null {
  const { restarts, staysDown } = (forecast ?? {}) as Partial<PlanForecast>
  return Array.isArray(restarts) && Array.isArray(staysDown) ? { restarts, staysDown } : null
}

/**
 * Formats why these VMs and no others must stay down, highest priority first: `no choice leaves
 * fewer of priority 50 down without leaving more important VMs down (certificate), nor of priority
 * 10 (a solver's claim, not checked)`.
 */
export function formatTriage(unplaced: readonly Pick<Unplaced, 'priority'>[], triage: TriageTold | null): string {
  if (!triage) return 'it is not known whether a better choice exists'
  const priorities = [...new Set(unplaced.map(({ priority = 0 }) => priority))].sort((a, b) => b - a)
  const certified = priorities.filter((each) => triage.certified.includes(each))
  const others = priorities.filter((each) => !certified.includes(each))
  const of = (all: number[]) => ` of priority ${formatList(all.map(String))}`
  // Adds this condition, because leaving a more important VM down could make room for several less
  // important VMs.
  const instead = 'down without leaving more important VMs down'
  const by = (proof: TriageTold['proof']) => ` (${triageWords[proof]})`
  if (certified.length === 0) return `no choice leaves fewer${of(priorities)} ${instead}${by(triage.proof)}`
  const first = `no choice leaves fewer${of(certified)} ${instead}${by('certificate')}`
  if (others.length === 0) return first
  if (triage.proof !== 'certificate') return `${first}, nor${of(others)}${by(triage.proof)}`
  return `${first}; whether a choice leaves fewer${of(others)} is not known`
}

/**
 * Explains why some VMs stay down, and what proves that no choice is better. Without a proof,
 * reports only that no better choice was found.
 */
export function formatWhyDown({
  unplaced,
  obstacle,
  triage,
}: Omit<LeftDown, 'unplaced'> & { unplaced: readonly Pick<Unplaced, 'priority'>[] }): string {
  if (obstacle === null && triage === null) return 'No better plan was found in time. A place for all may exist.'
  const all = obstacle === null ? '' : `There is no place for all: ${obstacle}. `
  return `${all}${capitalize(formatTriage(unplaced, triage))}.`
}

type Down = { vm: string; reason: string; priority?: number | undefined }
export type LeftDown = { unplaced: Down[]; obstacle: string | null; triage: TriageTold | null }

/** Reads the VMs that a dry run leaves down. An entry of unknown form becomes its JSON. */
export function readStaysDown({ unplaced, obstacle, triage }: Record<string, unknown>): LeftDown {
  const down = (Array.isArray(unplaced) ? unplaced : []).map((each: Partial<Down> | null): Down => {
    if (typeof each?.vm !== 'string') return { vm: JSON.stringify(each), reason: '' }
    const reason = typeof each.reason === 'string' ? each.reason : ''
    return { vm: each.vm, reason, ...(typeof each.priority === 'number' && { priority: each.priority }) }
  })
  return {
    unplaced: down,
    obstacle: typeof obstacle === 'string' ? obstacle : null,
    triage: readTriage(triage),
  }
}

/** Shortens the proof about the VMs that stay down for a dry run: leaves out the prices. */
export function toTriageTold(given: Triage | undefined): TriageTold | null {
  if (!given) return null
  const levels = given.proof === 'exhausted' ? [] : (given.levels ?? [])
  return { proof: given.proof, certified: levels.map(({ priority }) => priority) }
}

/** Reads the proof about VMs that stay down; null if there is none or its form is unknown. */
function readTriage(given: unknown): TriageTold | null {
  const { proof, certified } = (given ?? {}) as Partial<TriageTold>
  if (proof === undefined || !Object.hasOwn(triageWords, proof)) return null
  return Array.isArray(certified) && certified.every((each) => Number.isInteger(each)) ? { proof, certified } : null
}

function formatProofKind(proof: PlanProof | PlanProof['kind']): string {
  if (typeof proof === 'string') return proofWords[proof]
  if (proof.kind !== 'certificate') return proofWords[proof.kind]
  return `certificate: k = ${proof.k}, ${formatCount(Object.keys(proof.price).length, 'price')}`
}

type Outcome = Standing['after'][number]['outcome']

/**
 * The effect of the next failure: the name of each host or rack is in one of three lists. The name
 * is also in `worse` if the outcome was better before the plan.
 */
type StandingAfter = { restarted: string[]; moved: string[]; notFound: string[]; worse: string[] }

export function toStandingAfter({ before, after }: Standing): StandingAfter {
  const named = (outcome: Outcome) => after.filter((loss) => loss.outcome === outcome).map(({ name }) => name)
  const outcomeBefore = new Map(before.map(({ name, outcome }) => [name, outcome]))
  const worse = after.filter(({ name, outcome }) => rank[outcome] > rank[outcomeBefore.get(name) ?? outcome])
  return {
    restarted: named('restarted'),
    moved: named('moved'),
    notFound: named('not_found'),
    worse: worse.map(({ name }) => name),
  }
}

const rank: Record<Outcome, number> = { restarted: 0, moved: 1, not_found: 2 }

/**
 * Compares the cost of the next failure after this plan with the cost today, which the plan's steps
 * do not show. Null if all VMs survive every failure.
 */
export function formatAfterwards(standing: Standing): string | null {
  const { notFound } = toStandingAfter(standing)
  if (notFound.length === 0) return null
  const lostBefore = new Set(standing.before.filter(({ outcome }) => outcome === 'not_found').map(({ name }) => name))
  const fresh = notFound.filter((name) => !lostBefore.has(name))
  const isShort = new Set(standing.after.filter(({ lacks }) => lacks).map(({ name }) => name))
  // Claims that there is no room only if room is known to be missing for all names. If a search
  // only found no place, a place may still exist.
  const areShort = (names: string[]) => names.every((name) => isShort.has(name))
  const of = (names: string[]) =>
    `if ${formatList(names, 'or')} fails, ${areShort(names) ? 'there is no room for all its VMs' : 'no room for all its VMs was found'}`
  if (fresh.length === 0) return `${of(notFound)}, as today`
  const already = formatList(
    notFound.filter((name) => lostBefore.has(name)),
    'or',
  )
  const today = areShort(fresh) ? 'today there is' : 'today it was'
  return `${of(fresh)}; ${today}${already && `; for ${already} it is not found today either`}`
}

/** Lists hosts for whose VMs there is no room, and hosts for whose VMs no place was found. */
function formatLost({ after }: Standing, notFound: string[]): string[] {
  const short = new Map(after.flatMap(({ name, lacks }) => (lacks ? [[name, formatLacks(lacks)] as const] : [])))
  const unknown = notFound.filter((name) => !short.has(name))
  return [
    ...(short.size > 0
      ? [
          `there is no room for all VMs of ${formatList(
            [...short].map(([name, by]) => `${name} (${by})`),
            'or',
          )}`,
        ]
      : []),
    ...(unknown.length > 0 ? [`if it is ${formatList(unknown, 'or')}, no room for all its VMs was found`] : []),
  ]
}

/** Formats how much room is missing: `short by 8192 MiB of RAM and 500 mCPU`. */
function formatLacks({ ramMib, cpuMc }: NonNullable<Loss['lacks']>): string {
  const short = [...(ramMib > 0 ? [`${ramMib} MiB of RAM`] : []), ...(cpuMc > 0 ? [`${cpuMc} mCPU`] : [])]
  return `short by ${formatList(short)}`
}

/**
 * Describes in a sentence or two what happens if one more host fails, and whether the plan makes
 * this worse.
 */
export function formatStanding(standing: Standing): string {
  const { restarted, moved, notFound, worse } = toStandingAfter(standing)
  const all = standing.after.length
  if (all === 0) return `No ${standing.domain} is left that could fail.`
  if (restarted.length === all) return `If any one of ${formatCount(all, standing.domain)} fails, all its VMs restart.`
  const cases = [
    ...(restarted.length > 0
      ? [`all its VMs restart for ${restarted.length} of ${formatCount(all, standing.domain)}`]
      : []),
    ...(moved.length > 0 ? [`if it is ${formatList(moved, 'or')}, its VMs restart only after others have moved`] : []),
    ...formatLost(standing, notFound),
  ]
  const change =
    worse.length > 0 ? `Worse than before the plan: ${formatList(worse)}.` : 'No worse than before the plan.'
  return `If one more ${standing.domain} fails: ${cases.join('; ')}. ${change}`
}
