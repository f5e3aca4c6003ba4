import { manualChangeType } from './manual-change.ts'
import { questionType } from './question.ts'
import type { ResourceRef } from './registry.ts'

/** How far the agent goes by itself with one tool in incidents of one type, the least first. */
export const trustLevels = ['shadow', 'propose', 'act'] as const
export type TrustLevel = (typeof trustLevels)[number]

export const trustWords: Record<TrustLevel, string> = {
  shadow: 'what it would do is recorded; nobody is asked and nothing runs',
  propose: 'people are asked',
  act: 'what is reversible and near runs unasked; the rest is asked',
}

/** A tool that writes, in incidents of one type. */
export type TrustPair = { type: string; tool: string }

/**
 * The kernel's facts of a pair. `since`: when somebody set its level, null: nobody did. `stop`: a
 * person stopped this kind of write, so it is in shadow at any level; absent otherwise.
 */
export type PairTrust = { level: TrustLevel; since: string | null; stop?: { id: string; words: string } }

/** As the audit names a pair. */
export const pairName = ({ type, tool }: TrustPair): string => `${type} ${tool}`

/**
 * The incident type of a repair that was wrong or did not last: about Nightshift itself. The agent
 * takes none.
 */
export const trustLostType = 'nightshift_trust_lost'

/** Incidents in which no agent says a cause: nobody grades one. */
export const ungradedTypes: readonly string[] = [manualChangeType, trustLostType, questionType]

/** The reason for a level: a person, a lost repair, or an older version's unasked runs. */
export type TrustCause = 'person' | 'lost' | 'upgrade'

/** The level below which a pair falls by itself. */
export const levelAfterLoss: TrustLevel = 'propose'

/** What a person says of the cause that the agent gave. */
export const causeGrades = ['right', 'partly', 'wrong'] as const
export type CauseGrade = (typeof causeGrades)[number]

/** What a person says of a write that was recorded and not carried out. */
export const shadowGrades = ['right', 'wrong', 'harmful'] as const
export type ShadowGrade = (typeof shadowGrades)[number]

export type Grade = CauseGrade | ShadowGrade

/** What became of the writes of a pair, counted from the log. */
export type TrustRecord = {
  /** Calls that the kernel would have let run or asked about. */
  proposed: number
  /** Recorded and not carried out; and still without a grade. */
  shadowed: number
  ungraded: number
  approved: number
  denied: number
  ran: number
  held: number
  /** Held, and its alert did not come back. */
  lasted: number
  /** Did not hold, or did not last. */
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

/** The 95 % interval of Wilson for so many of so many; null of nothing. */
export function wilson(hits: number, of: number): { low: number; high: number } | null {
  if (of === 0) return null
  const z = 1.96
  const share = hits / of
  const middle = share + (z * z) / (2 * of)
  const spread = z * Math.sqrt((share * (1 - share)) / of + (z * z) / (4 * of * of))
  const whole = 1 + (z * z) / of
  return { low: Math.max(0, (middle - spread) / whole), high: Math.min(1, (middle + spread) / whole) }
}

/** Where a pair stands. `cause` and `since` are null where nobody set its level. */
export type PairStanding = TrustPair & {
  level: TrustLevel
  cause: TrustCause | null
  since: string | null
  record: TrustRecord
}

/** One call of a pair. `grade`: of its record in shadow, else of the cause it ran for. */
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

/** A change of a level; `by` and `reason` as the audit of the same transaction says them. */
export type TrustStep = {
  level: TrustLevel
  cause: TrustCause
  at: string
  by: string | null
  reason: string | null
  incidentId: string | null
}

/** Every pair that was proposed or set; `newPairs`: the level of one that nobody has set. */
export type TrustList = { newPairs: TrustLevel; items: PairStanding[] }

/**
 * One pair with all that its level rests on. `seen` stands for the record: the giver of more sends
 * it back.
 */
export type PairHistory = PairStanding & {
  risk: string
  seen: string
  steps: TrustStep[]
  calls: TrustCall[]
  /** The share of grades that was right: from `low` to `high`, with 95 %. */
  weeks: (GradedWeek & { low: number; high: number })[]
}

/** A write that was recorded in shadow and not carried out. */
export type ShadowCard = {
  attempt: number
  callId: string
  seq: number
  at: string
  tool: string
  arguments: Record<string, unknown> | null
  targets: ResourceRef[]
  risk: string
  /** What would have become of it without the shadow. */
  would: 'run' | 'ask'
  /** What its dry run said; null where it had none. */
  summary: string | null
  grade: ShadowGrade | null
  gradedBy: string | null
}

/** What people said of an incident's cause, and what was recorded instead of written. */
export type IncidentTrust = { cause: { verdict: CauseGrade; by: string; at: string } | null; shadow: ShadowCard[] }
