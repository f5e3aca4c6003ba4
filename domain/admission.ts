import type { Severity } from './incident.ts'

/** A type with incidents that nobody works on yet. */
export type WaitingType = { type: string; isCritical: boolean; isAtWork: boolean }
/** A type whose first incident is being investigated, or is about to be. */
export type LeadingType = { type: string; isCritical: boolean }

/** Critical incidents have room beside all other limits: how many may be at work so, and how many are, leaders and followers. */
export type CriticalRoom = { max: number; atWork: number }

/**
 * Which types may be worked on, in the order given (the most urgent, then oldest, first). A slot is for a leader: the followers of a
 * type that is at work already take none. A critical type takes of the room for critical incidents first; of several slots one is kept
 * for them besides, so that no number of storms of warnings makes one wait.
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

/** A critical follower waits for its leader's first looks, and no longer: the leader may take minutes. */
const criticalWaitSeconds = 20

/**
 * How long a member of a group still waits for its leader at work, in seconds; null: until it ends. A critical one waits for no warning.
 */
export function waitForLeader(member: Severity, leader: { severity: Severity; atWorkSeconds: number }): number | null {
  if (member !== 'critical') return null
  return leader.severity === 'critical' ? Math.max(0, criticalWaitSeconds - leader.atWorkSeconds) : 0
}

/** How many followers may begin: critical ones in the room for them as well, the others in what the limits leave. */
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

/** Which incidents are investigated unasked: every condition must hold. No condition: all. Null: none. */
export type InvestigateFilter = Condition[] | null

type Condition =
  | { kind: 'severity'; atLeast: Severity }
  | { kind: 'label'; name: string; value: string; isWanted: boolean }

const order: Severity[] = ['info', 'warning', 'critical']
const limit = 20
const usage = 'use all, none, or conditions joined by commas: severity>=warning, env=prod, team!=lab'

/** Reads the text of the setting `agent.investigate`. Refuses what it does not understand, and says what it takes. */
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

/** Why the filter leaves an incident to people, naming the condition; null when it is investigated. */
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
    // Of an incident the severity is ours, whatever word the alert used for it.
    const actual = name === 'severity' ? incident.severity : incident.labels[name]
    if ((actual === value) === isWanted) continue
    return `agent.investigate asks for ${name}${isWanted ? '=' : '!='}${value}, and this has ${actual === undefined ? `no ${name}` : `${name}=${actual.slice(0, 100)}`}`
  }
  return null
}
