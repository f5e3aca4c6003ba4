import type { ResourceRef } from './registry.ts'
import type { SiteDecisions, SiteDemand } from './site-decision.ts'
import type { Risk } from './tool.ts'
import type { PairTrust } from './trust.ts'

/** The error codes that a model meets in `error.code`. Closed, few, and each tells what can be done. */
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
  /** The model can get past it by itself, by what the hint says; counted as recovered when the same tool then succeeds. */
  recoverable: boolean
  /** One of these again and again is a loop: three in an attempt end it. */
  loop?: true
  /** The call could not be read: three turns in a row of one of these end the attempt. */
  form?: true
}

/** Among corrections: a person changed the arguments before approving. */
export const editedByPerson = 'EDITED_BY_PERSON'

/** Every way a call is refused. The finer word stands in `error.details.rule` and on the `call_judged` row. */
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
  /** Not an error: the ending is kept and judged again when the alerts were quiet for long enough. */
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
  /** A command that somebody would be asked about, where a tool tells the same unasked: said once of each. */
  FREE_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: true },
  /** A call of code itself that would write, or that somebody would be asked about. */
  NOT_A_FREE_LOOK: { class: 'POLICY_BLOCKED', recoverable: false },
  DECIDED_ELSEWHERE: { class: 'POLICY_BLOCKED', recoverable: false },
  /** The tool is in shadow for this type of incident: what it would have done is recorded for people, and not carried out. */
  SHADOW: { class: 'POLICY_BLOCKED', recoverable: false },
  TARGET_BUSY: { class: 'POLICY_BLOCKED', recoverable: false },
  /** Somebody saw a host alive lately from which VMs would be started elsewhere: no word of a person lifts it. */
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
  /** An answer before this call ended the turn: the approval was never given, or the run stopped. */
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

/** What the judge weighs besides the log: read in the transaction that writes its ruling, and stored on that row. */
export type Policy = {
  incidentId: string
  resource: ResourceRef | null
  role: 'leader' | 'follower'
  paused: boolean
  /** Configuration's word on this tool: it raises a risk and a number of people, and lowers neither. */
  raised: { risk: Risk | null; required: number }
  /** Names offered for this type of incident; null means all. */
  offered: readonly string[] | null
  /** The incident's resource and its direct neighbours. */
  vicinity: readonly ResourceRef[]
  /** Digests a person denied anywhere in the group. */
  denied: readonly string[]
  /**
   * The denials of this tool once more, by the one key of each thing (`actionByKeys`): under its other name the same action has another
   * digest. Absent where this tool was not denied, and in what older versions stored.
   */
  deniedActions?: readonly string[]
  /** The key of each target that goes by more than one name. */
  keys?: Readonly<Record<string, string>>
  /** Targets another incident is writing to now. */
  busy: readonly { target: string; incidentId: string }[]
  /** Standing grants of this tool that may still be used; which action they are for is checked here. */
  grants: readonly { id: string; actionDigest: string; stateFingerprint: string; grantedAt?: string }[]
  /** How far this tool goes by itself in incidents of this type. Absent in what older versions stored, which knew no levels. */
  trust?: PairTrust
  /** The incident's alerts as they stand, where an ending is judged; absent in what version 0.1 stored. */
  alerts?: {
    total: number
    firing: number
    unknown: number
    /** Ended, by a word of their sender that proves nothing. Absent in what older versions stored. */
    unproven?: number
    /** Why nobody knows whether they are over. Absent where everybody does, and in what older versions stored. */
    doubt?: string
    /** Firing, of a sender that never says when an alert ends. */
    endless: number
    /** The incident is critical: what nothing shows to be over is for a person. Absent in what older versions stored. */
    isCritical?: boolean
    /** Since the last of them ended; null while one fires, or without one. */
    endedForSeconds: number | null
    /** How long they must be quiet before an incident may end as over. */
    quietSeconds: number
  }
  /** Set where a person asked for this write: what they named is known, a pause stops them not, and they agreed to this state. */
  manual?: { stateFingerprint: string; isUndo?: true }
  /** A person asked something; there is nothing to repair. */
  isQuestion?: boolean
  /** Targets that Nightshift itself stands on: whatever touches them is critical. Absent in what older versions stored. */
  own?: readonly OwnTarget[]
  /** What the site's policy says of this call. Absent where there is none, and in what older versions stored. */
  site?: SiteDecisions
  /** An approval that a person gave for this call and that is still in time; binding is checked here. */
  approval: {
    id: string
    callId: string
    actionDigest: string
    stateFingerprint: string
    /** Hosts of which those who approved say that they are off. Absent where they named none, and in what older versions stored. */
    hostIsOff?: readonly string[]
    /** What the site's policy wanted when it was asked. Absent where nothing, and in what older versions stored. */
    site?: SiteDemand
  } | null
}

/** Where nobody has said anything: nothing denied, taken, granted or approved, every tool offered. */
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
