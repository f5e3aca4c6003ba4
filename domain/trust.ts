import { manualChangeType } from './manual-change.ts'
import { questionType } from './question.ts'
import type { ResourceRef } from './registry.ts'

/**
 * Levels of trust, the lowest first: how far the agent may act without approval, with one tool in
 * incidents of one type.
 */
export const trustLevels = ['shadow', 'propose', 'act'] as const
export type TrustLevel = (typeof trustLevels)[number]

export const trustWords: Record<TrustLevel, string> = {
  shadow: 'the writes are only recorded; nobody is asked and nothing runs',
  propose: 'every write requires approval',
  act: 'reversible writes near the incident run without approval; other writes require approval',
}

/** A pair: a writing tool in incidents of one type. */
export type TrustPair = { type: string; tool: string }

/**
 * Facts about a pair for the kernel. `since`: when somebody set the pair's level; null if nobody
 * did. `stop`: set if a person stopped the writes of this pair, which puts them in shadow at any
 * level.
 */
export type PairTrust = { level: TrustLevel; since: string | null; stop?: { id: string; words: string } }

/** Names a pair for the audit log. */
export const pairName = ({ type, tool }: TrustPair): string => `${type} ${tool}`

/**
 * The type of an incident about a repair that was wrong or did not last. The agent does not
 * investigate an incident of this type, which is a problem of Nightshift itself.
 */
export const trustLostType = 'nightshift_trust_lost'

/** Incident types in which the agent gives no cause, so that there is none to grade. */
export const ungradedTypes: readonly string[] = [manualChangeType, trustLostType, questionType]

/**
 * Why a pair has its level: a person set it, a repair failed or did not last, or its writes ran
 * automatically under an older version.
 */
export type TrustCause = 'person' | 'lost' | 'upgrade'

/** The level to which a pair falls automatically after a repair that failed or did not last. */
export const levelAfterLoss: TrustLevel = 'propose'

/** A person's grade of the agent's cause. */
export const causeGrades = ['right', 'partly', 'wrong'] as const
export type CauseGrade = (typeof causeGrades)[number]

/** A person's grade of a write in shadow, which was recorded but not executed. */
export const shadowGrades = ['right', 'wrong', 'harmful'] as const
export type ShadowGrade = (typeof shadowGrades)[number]

export type Grade = CauseGrade | ShadowGrade

/** Numbers of a pair's writes by outcome, counted from the logs of incidents. */
export type TrustRecord = {
  /** Calls that the kernel would have allowed, or about which it would have asked people. */
  proposed: number
  /** Calls in shadow (recorded, not executed), and how many of them are not graded yet. */
  shadowed: number
  ungraded: number
  approved: number
  denied: number
  ran: number
  held: number
  /** Writes that were verified and after which the alert did not come back. */
  lasted: number
  /** Writes that were not verified, or that did not last. */
  lost: number
  right: number
  wrong: number
}

export const emptyRecord: TrustRecord = {
  proposed: 0,
  shadowed: 0,
  ungraded: 0,
  approved: 0,
  denied: 0,
  ran: 0,
  held: 0,
  lasted: 0,
  lost: 0,
  right: 0,
  wrong: 0,
}

/** Returns the 95 % Wilson interval of hits in trials; null without a trial. */
export function wilson(hits: number, of: number): { low: number; high: number } | null {
  if (of === 0) return null
  const z = 1.96
  const share = hits / of
  const middle = share + (z * z) / (2 * of)
  const spread = z * Math.sqrt((share * (1 - share)) / of + (z * z) / (4 * of * of))
  const whole = 1 + (z * z) / of
  return { low: Math.max(0, (middle - spread) / whole), high: Math.min(1, (middle + spread) / whole) }
}

/** The state of a pair. `cause` and `since` are null if nobody set the pair's level. */
export type PairStanding = TrustPair & {
  level: TrustLevel
  cause: TrustCause | null
  since: string | null
  record: TrustRecord
}

/**
 * One call of a pair. `grade`: the grade of the call in shadow, otherwise the grade of the
 * incident's cause.
 */
export type TrustCall = {
  incidentId: string
  attempt: number
  callId: string
  seq: number
  at: string
  shadowed: boolean
  approved: boolean
  denied: boolean
  ran: boolean
  verified: string | null
  lost: boolean
  grade: Grade | null
}

export type GradedWeek = { week: string; right: number; wrong: number }

/** A change of a pair's level. The audit entry of its transaction repeats `by` and `reason`. */
export type TrustStep = {
  level: TrustLevel
  cause: TrustCause
  at: string
  by: string | null
  reason: string | null
  incidentId: string | null
}

/** All pairs that were proposed or set. `newPairs`: the level of a pair that nobody set. */
export type TrustList = { newPairs: TrustLevel; items: PairStanding[] }

/**
 * One pair with the facts on which its level is based. `seen` identifies these facts; a request to
 * raise the level must contain it.
 */
export type PairHistory = PairStanding & {
  risk: string
  seen: string
  steps: TrustStep[]
  calls: TrustCall[]
  /** The share of right grades in each week, with its 95 % interval from `low` to `high`. */
  weeks: (GradedWeek & { low: number; high: number })[]
}

/** A write that was recorded in shadow but not executed. */
export type ShadowCard = {
  attempt: number
  callId: string
  seq: number
  at: string
  tool: string
  arguments: Record<string, unknown> | null
  targets: ResourceRef[]
  risk: string
  /** The verdict of the policy check if the tool were not in shadow. */
  would: 'run' | 'ask'
  /** The summary of the dry run; null if the write has no dry run. */
  summary: string | null
  grade: ShadowGrade | null
  gradedBy: string | null
}

/** The grade of an incident's cause, and the incident's writes in shadow. */
export type IncidentTrust = { cause: { verdict: CauseGrade; by: string; at: string } | null; shadow: ShadowCard[] }
