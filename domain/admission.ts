import type { Severity } from './incident.ts'

/** A type with incidents that nobody works on yet. */
export type WaitingType = { type: string; isCritical: boolean; isAtWork: boolean }
/** A type whose first incident is being investigated, or is about to be. */
export type LeadingType = { type: string; isCritical: boolean }

/** Room for critical incidents beside other limits: how many may be at work, and how many are. */
export type CriticalRoom = { max: number; atWork: number }

/**
 * Chooses the types that may be worked on, from those given (the most urgent, then the oldest,
 * first). A leader takes a slot; followers of a type at work take none. A critical type first takes
 * of the room for critical incidents. Of several slots one is kept for critical types, so that a
 * storm of warnings makes none wait.
 */
export function admittedTypes(
  waiting: readonly WaitingType[],
  leading: readonly LeadingType[],
  slots: number,
  critical: CriticalRoom,
): string[] {
  const forOthers = Math.max(1, slots - 1)
  const leadingCritical = leading.filter(({ isCritical }) => isCritical).length
  let room = critical.max - Math.max(critical.atWork, leadingCritical)
  let others = leading.length - leadingCritical
  let free = slots - others - Math.max(0, leadingCritical - critical.max)
  const admitted: string[] = []
  for (const { type, isCritical, isAtWork } of waiting) {
    if (isAtWork) {
      admitted.push(type)
      continue
    }
    if (isCritical && room > 0) {
      room -= 1
      admitted.push(type)
      continue
    }
    if (free <= 0 || (!isCritical && others >= forOthers)) continue
    free -= 1
    if (!isCritical) others += 1
    admitted.push(type)
  }
  return admitted
}

/** A critical follower waits only for its leader's first looks: the leader may take minutes. */
const criticalWaitSeconds = 20

/**
 * Seconds for which a member still waits for its leader at work; null: until it ends. A critical
 * one waits for no warning.
 */
export function waitForLeader(member: Severity, leader: { severity: Severity; atWorkSeconds: number }): number | null {
  if (member !== 'critical') return null
  return leader.severity === 'critical' ? Math.max(0, criticalWaitSeconds - leader.atWorkSeconds) : 0
}

/** Counts followers that may begin: critical ones in the room for them, others in the rest. */
export function roomForFollowers(
  ready: { critical: number; others: number },
  left: number,
  critical: CriticalRoom,
): { critical: number; others: number } {
  const own = Math.max(0, critical.max - critical.atWork)
  const begin = Math.min(ready.critical, own + Math.max(0, left))
  const others = Math.min(ready.others, Math.max(0, left - Math.max(0, begin - own)))
  return { critical: begin, others }
}

/**
 * Conditions of an incident that is investigated unasked: all must hold. None: every incident.
 * Null: no incident.
 */
export type InvestigateFilter = Condition[] | null

type Condition =
  | { kind: 'severity'; atLeast: Severity }
  | { kind: 'label'; name: string; value: string; isWanted: boolean }

const order: Severity[] = ['info', 'warning', 'critical']
const limit = 20
const usage = 'use all, none, or conditions joined by commas: severity>=warning, env=prod, team!=lab'

/** Reads `agent.investigate`. Refuses what it does not understand, and says what it takes. */
export function parseInvestigateFilter(
  text: string,
): { ok: true; filter: InvestigateFilter } | { ok: false; reason: string } {
  const trimmed = text.trim()
  if (trimmed === 'all') return { ok: true, filter: [] }
  if (trimmed === 'none') return { ok: true, filter: null }
  const parts = trimmed.split(',').map((part) => part.trim())
  if (parts.length > limit) return { ok: false, reason: `at most ${limit} conditions are taken; ${usage}` }
  const filter: Condition[] = []
  for (const part of parts) {
    const condition = parseCondition(part)
    if (condition === null)
      return { ok: false, reason: `${JSON.stringify(part.slice(0, 80))} is not a condition: ${usage}` }
    filter.push(condition)
  }
  return { ok: true, filter }
}

function parseCondition(part: string): Condition | null {
  const severity = /^severity\s*(>=|=)\s*(info|warning|critical)$/.exec(part)
  if (severity?.[1] === '>=') return { kind: 'severity', atLeast: severity[2] as Severity }
  if (severity) return { kind: 'label', name: 'severity', value: severity[2] as string, isWanted: true }
  const label = /^([A-Za-z_][A-Za-z0-9_.-]{0,99})\s*(!?=)\s*([^\s,=!<>][^,]{0,199})$/.exec(part)
  if (!label) return null
  return { kind: 'label', name: label[1] as string, value: (label[3] as string).trim(), isWanted: label[2] === '=' }
}

/** Names the condition that leaves an incident to people; null where it is investigated. */
export function keptReasonOf(
  filter: InvestigateFilter,
  incident: { severity: Severity; labels: Record<string, string> },
): string | null {
  if (filter === null) return 'agent.investigate is none for incidents of this type'
  for (const condition of filter) {
    if (condition.kind === 'severity') {
      if (order.indexOf(incident.severity) >= order.indexOf(condition.atLeast)) continue
      return `agent.investigate asks for severity ${condition.atLeast} or above, and this is ${incident.severity}`
    }
    const { name, value, isWanted } = condition
    // The severity is ours, whatever word the alert used for it.
    const actual = name === 'severity' ? incident.severity : incident.labels[name]
    if ((actual === value) === isWanted) continue
    return `agent.investigate asks for ${name}${isWanted ? '=' : '!='}${value}, and this has ${actual === undefined ? `no ${name}` : `${name}=${actual.slice(0, 100)}`}`
  }
  return null
}
