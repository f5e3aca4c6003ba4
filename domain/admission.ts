import type { Severity } from './incident.ts'

/** An incident type with incidents that are not investigated yet. */
export type WaitingType = { type: string; isCritical: boolean; isAtWork: boolean }
/** An incident type whose first incident is being investigated, or is about to be. */
export type LeadingType = { type: string; isCritical: boolean }

/**
 * Slots for critical incidents in addition to all other slots. `max`: how many critical incidents
 * may be investigated at once. `atWork`: how many are investigated now.
 */
export type CriticalRoom = { max: number; atWork: number }

/**
 * Chooses, from `waiting` (the most urgent type first, then the oldest), the types whose incidents
 * may be investigated. A leader takes a slot; its followers take none. A critical type first uses
 * the slots for critical incidents. If there are several ordinary slots, one of them is kept for
 * critical types, so that a storm of warnings does not delay critical incidents.
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

/**
 * Seconds for which a critical follower waits for its leader, whose investigation may take minutes.
 */
const criticalWaitSeconds = 20

/**
 * Seconds for which a follower still waits for its leader. Null means that the follower waits until
 * the leader ends. A critical follower does not wait for a leader with a warning.
 */
export function waitForLeader(member: Severity, leader: { severity: Severity; atWorkSeconds: number }): number | null {
  if (member !== 'critical') return null
  return leader.severity === 'critical' ? Math.max(0, criticalWaitSeconds - leader.atWorkSeconds) : 0
}

/**
 * Counts the followers that may begin: critical followers in the slots for critical incidents, and
 * all other followers in the `left` slots.
 */
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
 * Conditions under which an incident is investigated automatically: all of them at once. An empty
 * list allows every incident, and null allows no incident.
 */
export type InvestigateFilter = Condition[] | null

type Condition =
  | { kind: 'severity'; atLeast: Severity }
  | { kind: 'label'; name: string; value: string; isWanted: boolean }

const order: Severity[] = ['info', 'warning', 'critical']
const limit = 20
const usage = 'use all, none, or conditions joined by commas: severity>=warning, env=prod, team!=lab'

/** Parses `agent.investigate`. Refuses an unknown text, and lists the accepted forms. */
export function parseInvestigateFilter(
  text: string,
): { ok: true; filter: InvestigateFilter } | { ok: false; reason: string } {
  const trimmed = text.trim()
  if (trimmed === 'all') return { ok: true, filter: [] }
  if (trimmed === 'none') return { ok: true, filter: null }
  const parts = trimmed.split(',').map((part) => part.trim())
  if (parts.length > limit) return { ok: false, reason: `at most ${limit} conditions are allowed; ${usage}` }
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

/**
 * Returns why an incident is left to people: the condition that it does not meet. Null if the
 * incident is investigated.
 */
export function keptReasonOf(
  filter: InvestigateFilter,
  incident: { severity: Severity; labels: Record<string, string> },
): string | null {
  if (filter === null) return 'agent.investigate is none for incidents of this type'
  for (const condition of filter) {
    if (condition.kind === 'severity') {
      if (order.indexOf(incident.severity) >= order.indexOf(condition.atLeast)) continue
      return `agent.investigate requires severity ${condition.atLeast} or above, and this incident is ${incident.severity}`
    }
    const { name, value, isWanted } = condition
    // Compares the mapped severity, not the sender's word for the severity.
    const actual = name === 'severity' ? incident.severity : incident.labels[name]
    if ((actual === value) === isWanted) continue
    return `agent.investigate requires ${name}${isWanted ? '=' : '!='}${value}, and this incident has ${actual === undefined ? `no ${name}` : `${name}=${actual.slice(0, 100)}`}`
  }
  return null
}
