import type { ResourceRef } from './registry.ts'
import type { SiteDecisions, SiteDemand } from './site-decision.ts'
import type { Risk } from './tool.ts'
import type { PairTrust } from './trust.ts'

/** Error codes that a model meets in `error.code`. Closed and few; each tells what can be done. */
export type ErrorClass =
  | 'STRICT_RESOLUTION'
  | 'ROUTING_MISMATCH'
  | 'FSM_BLOCKED'
  | 'NOT_FOUND'
  | 'ACTION_NOT_ALLOWED'
  | 'POLICY_BLOCKED'
  | 'APPROVAL_REQUIRED'
  | 'INVALID_INPUT'
  | 'EXECUTION_FAILED'

type Refusal = {
  class: ErrorClass
  /** The model can get past it by the hint: recovered once the same tool then succeeds. */
  recoverable: boolean
  /** One of these again and again is a loop: three in an attempt end it. */
  loop?: true
  /** The call could not be read: three turns in a row of one of these end the attempt. */
  form?: true
}

/** Among corrections: a person changed the arguments before approving. */
export const editedByPerson = 'EDITED_BY_PERSON'

/**
 * Reasons to refuse a call. The finer word stands in `error.details.rule` and on the `call_judged`
 * row.
 */
export const refusals = {
  UNKNOWN_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: false, form: true },
  NOT_OFFERED: { class: 'ACTION_NOT_ALLOWED', recoverable: false },
  MALFORMED_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false, form: true },
  INVALID_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false, form: true },
  /** A call stood in the text of an answer, or its JSON was put right. */
  CALL_AS_TEXT: { class: 'INVALID_INPUT', recoverable: true },
  /** A value was read for what it plainly means. */
  PLAIN_VALUE: { class: 'INVALID_INPUT', recoverable: true },
  SECRET_IN_ARGUMENTS: { class: 'POLICY_BLOCKED', recoverable: false },
  FOREIGN_INCIDENT: { class: 'ACTION_NOT_ALLOWED', recoverable: false },
  REPEATED_CALL: { class: 'POLICY_BLOCKED', recoverable: false, loop: true },
  ALTERNATING_CALLS: { class: 'POLICY_BLOCKED', recoverable: false, loop: true },
  STRICT_RESOLUTION: { class: 'STRICT_RESOLUTION', recoverable: true },
  AMBIGUOUS_NAME: { class: 'STRICT_RESOLUTION', recoverable: true },
  ROUTING_MISMATCH: { class: 'ROUTING_MISMATCH', recoverable: true },
  FSM_BLOCKED: { class: 'FSM_BLOCKED', recoverable: true },
  NO_DIAGNOSTIC: { class: 'FSM_BLOCKED', recoverable: true },
  OWN_TARGET_UNSEEN: { class: 'FSM_BLOCKED', recoverable: true },
  EVIDENCE_MISSING: { class: 'POLICY_BLOCKED', recoverable: true },
  STILL_FIRING: { class: 'FSM_BLOCKED', recoverable: true },
  STILL_DEGRADED: { class: 'FSM_BLOCKED', recoverable: true },
  NOT_MITIGATED: { class: 'FSM_BLOCKED', recoverable: true },
  NO_WRITE_HELD: { class: 'FSM_BLOCKED', recoverable: true },
  /** No error: the ending is kept, and judged again when the alerts were quiet long enough. */
  NOT_QUIET_YET: { class: 'FSM_BLOCKED', recoverable: true },
  NO_ALERT: { class: 'POLICY_BLOCKED', recoverable: true },
  IS_A_QUESTION: { class: 'INVALID_INPUT', recoverable: true },
  NO_QUESTION: { class: 'INVALID_INPUT', recoverable: true },
  NOTHING_WRITTEN: { class: 'POLICY_BLOCKED', recoverable: true },
  NOTHING_CHANGED: { class: 'POLICY_BLOCKED', recoverable: true },
  REPAIR_NOT_VERIFIED: { class: 'POLICY_BLOCKED', recoverable: true },
  WROTE_SOMETHING: { class: 'POLICY_BLOCKED', recoverable: true },
  CLAIM_NOT_SHOWN: { class: 'POLICY_BLOCKED', recoverable: true },
  HYPOTHESIS_NOT_SHOWN: { class: 'POLICY_BLOCKED', recoverable: true },
  PHANTOM_CLAIM: { class: 'POLICY_BLOCKED', recoverable: true },
  /** A rule of the site's policy: no approval lifts it. */
  SITE_NEVER: { class: 'POLICY_BLOCKED', recoverable: false },
  PAUSED: { class: 'POLICY_BLOCKED', recoverable: false },
  DENIED_BEFORE: { class: 'POLICY_BLOCKED', recoverable: false, loop: true },
  /** A command that would be asked, where a tool tells the same unasked: said once of each. */
  FREE_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: true },
  /** A call of code itself that would write, or that somebody would be asked about. */
  NOT_A_FREE_LOOK: { class: 'POLICY_BLOCKED', recoverable: false },
  DECIDED_ELSEWHERE: { class: 'POLICY_BLOCKED', recoverable: false },
  /**
   * The tool is in shadow for this incident type: the call is recorded for people, and not carried
   * out.
   */
  SHADOW: { class: 'POLICY_BLOCKED', recoverable: false },
  TARGET_BUSY: { class: 'POLICY_BLOCKED', recoverable: false },
  /** Somebody lately saw a host alive whose VMs would start elsewhere: no word lifts it. */
  WITNESSES_DISAGREE: { class: 'POLICY_BLOCKED', recoverable: false },
  /** One witness is not enough for that, and nobody said that the host is off. */
  HOST_NOT_CONFIRMED: { class: 'POLICY_BLOCKED', recoverable: false },
  STATE_CHANGED: { class: 'POLICY_BLOCKED', recoverable: false },
  /** An undo, where somebody changed what the write had left. */
  UNDO_MOVED_ON: { class: 'POLICY_BLOCKED', recoverable: false },
  NOT_PREPARED: { class: 'EXECUTION_FAILED', recoverable: false },
  FORBIDDEN_COMMAND: { class: 'POLICY_BLOCKED', recoverable: false },
  OPTION_ADDED: { class: 'POLICY_BLOCKED', recoverable: true },
  UNBOUNDED_COMMAND: { class: 'POLICY_BLOCKED', recoverable: true },
  /** A command was put into the form of it that only looks. */
  SAFER_FORM: { class: 'POLICY_BLOCKED', recoverable: true },
  UNBOUNDED_QUERY: { class: 'POLICY_BLOCKED', recoverable: true },
  /** A person said no. Not a refusal of the judge, but the model reads it in the same form. */
  DENIED: { class: 'POLICY_BLOCKED', recoverable: false },
  /** An answer before this call ended the turn: the approval was not given, or the run stopped. */
  NOT_RUN: { class: 'APPROVAL_REQUIRED', recoverable: false },
} as const satisfies Record<string, Refusal>

export type RefusalCode = keyof typeof refusals

/** Why a call may run, or has to be asked about. */
export const allowances = [
  'READ',
  'READ_COMMAND',
  'RECORD',
  'TERMINAL',
  'REVERSIBLE_NEAR',
  'APPROVED',
  'GRANTED',
  /** A rule of the site's policy lets it run, or wants it asked. */
  'SITE_RUNS',
  'SITE_ASKS',
  'DRIFT',
  'REVERSIBLE_FAR',
  /** It would run unasked, and its tool is not trusted to in incidents of this type. */
  'PROPOSED',
  'UNPROVEN_COMMAND',
  'RISK_LOW',
  'RISK_MEDIUM',
  'RISK_HIGH',
  'RISK_CRITICAL',
] as const
export type AllowCode = (typeof allowances)[number]

export type RulingCode = RefusalCode | AllowCode

/** What a stored word means; a word of another version is a plain policy block. */
export function refusalOf(code: string): Refusal {
  return Object.hasOwn(refusals, code) ? refusals[code as RefusalCode] : { class: 'POLICY_BLOCKED', recoverable: false }
}

/** A target that Nightshift itself stands on, and what of it: `its database`. */
export type OwnTarget = { target: string; why: string }

/**
 * Facts that the judge weighs besides the log: read in the ruling's transaction, and stored on its
 * row.
 */
export type Policy = {
  incidentId: string
  resource: ResourceRef | null
  role: 'leader' | 'follower'
  paused: boolean
  /** The settings for this tool: they raise its risk and number of people, and lower neither. */
  raised: { risk: Risk | null; required: number }
  /** Names offered for this type of incident; null means all. */
  offered: readonly string[] | null
  /** The incident's resource and its direct neighbours. */
  vicinity: readonly ResourceRef[]
  /** Digests a person denied anywhere in the group. */
  denied: readonly string[]
  /**
   * Denials of this tool by the one key of each thing (`actionByKeys`): under another name the same
   * action has another digest. Absent where it was not denied, and in older rows.
   */
  deniedActions?: readonly string[]
  /** The key of each target that goes by more than one name. */
  keys?: Readonly<Record<string, string>>
  /** Targets another incident is writing to now. */
  busy: readonly { target: string; incidentId: string }[]
  /** Standing grants of this tool that are still usable; for which action, is checked here. */
  grants: readonly { id: string; actionDigest: string; stateFingerprint: string; grantedAt?: string }[]
  /** The level of this tool in incidents of this type. Absent in older rows, which knew none. */
  trust?: PairTrust
  /** The incident's alerts now, where an ending is judged; absent in rows of version 0.1. */
  alerts?: {
    total: number
    firing: number
    unknown: number
    /** Ended by a sender's word that proves nothing. Absent in older rows. */
    unproven?: number
    /** Why nobody knows if they are over. Absent where that is known, and in older rows. */
    doubt?: string
    /** Firing, of a sender that never says when an alert ends. */
    endless: number
    /** The incident is critical: an unproven end is for a person. Absent in older rows. */
    isCritical?: boolean
    /** Since the last of them ended; null while one fires, or without one. */
    endedForSeconds: number | null
    /** How long they must be quiet before an incident may end as over. */
    quietSeconds: number
  }
  /**
   * Set where a person asked for this write: their names are known, a pause does not stop it, and
   * they agreed to this state.
   */
  manual?: { stateFingerprint: string; isUndo?: true }
  /** A person asked something; there is nothing to repair. */
  isQuestion?: boolean
  /** Targets that Nightshift itself stands on: touching one is critical. Absent in older rows. */
  own?: readonly OwnTarget[]
  /** The site policy's word on this call. Absent where there is none, and in older rows. */
  site?: SiteDecisions
  /** A person's approval for this call that is still in time; binding is checked here. */
  approval: {
    id: string
    callId: string
    actionDigest: string
    stateFingerprint: string
    /**
     * Hosts that the approvers state to be off. Absent where they named none, and in older rows.
     */
    hostIsOff?: readonly string[]
    /**
     * The demand of the site's policy when it was asked. Absent where there was none, and in older
     * rows.
     */
    site?: SiteDemand
  } | null
}

/** The state before anybody spoke: nothing denied, taken, granted, approved; all tools offered. */
export function plainPolicy(incidentId: string, resource: ResourceRef | null): Policy {
  return {
    incidentId,
    resource,
    role: 'leader',
    paused: false,
    raised: { risk: null, required: 1 },
    offered: null,
    vicinity: resource ? [resource] : [],
    denied: [],
    busy: [],
    grants: [],
    approval: null,
  }
}
