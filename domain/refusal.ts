import type { ResourceRef } from './registry.ts'
import type { SiteDecisions, SiteDemand } from './site-decision.ts'
import type { Risk } from './tool.ts'
import type { PairTrust } from './trust.ts'

/**
 * Error codes for a model, in `error.code`: a fixed, short list. A code shows the model what it can
 * do next.
 */
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
  /**
   * Whether the hint of the refusal helps the model. The refusal counts as recovered if the refused
   * tool then succeeds.
   */
  recoverable: boolean
  /** A sign of a loop. Three refusals with looping codes in one attempt end the attempt. */
  loop?: true
  /** The call could not be parsed. Three turns in a row with this fault end the attempt. */
  form?: true
}

/** The code for a person's change of the arguments before approving. */
export const editedByPerson = 'EDITED_BY_PERSON'

/**
 * Codes of refused calls. The exact code is in `error.details.rule` and in the `call_judged` row.
 */
export const refusals = {
  UNKNOWN_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: false, form: true },
  NOT_OFFERED: { class: 'ACTION_NOT_ALLOWED', recoverable: false },
  MALFORMED_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false, form: true },
  INVALID_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false, form: true },
  /** A call was found in the text of a response, or the JSON of a call was corrected. */
  CALL_AS_TEXT: { class: 'INVALID_INPUT', recoverable: true },
  /** A value of an argument was converted to its obvious meaning. */
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
  /** No error: the ending is kept, and checked again once the alerts were quiet long enough. */
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
  /** A rule of the configured policy, which no approval overrides. */
  SITE_NEVER: { class: 'POLICY_BLOCKED', recoverable: false },
  PAUSED: { class: 'POLICY_BLOCKED', recoverable: false },
  DENIED_BEFORE: { class: 'POLICY_BLOCKED', recoverable: false, loop: true },
  /**
   * A command needs approval although a tool without approval gives the command's result. Refused
   * only once for each command.
   */
  FREE_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: true },
  /** Code itself made the call, but the call would write or need approval. */
  NOT_A_FREE_LOOK: { class: 'POLICY_BLOCKED', recoverable: false },
  DECIDED_ELSEWHERE: { class: 'POLICY_BLOCKED', recoverable: false },
  /**
   * The tool is in shadow for this incident type. The call is recorded for people, but not
   * executed.
   */
  SHADOW: { class: 'POLICY_BLOCKED', recoverable: false },
  TARGET_BUSY: { class: 'POLICY_BLOCKED', recoverable: false },
  /** A host whose VMs would start elsewhere was recently seen alive. No approval overrides this. */
  WITNESSES_DISAGREE: { class: 'POLICY_BLOCKED', recoverable: false },
  /** Starting VMs elsewhere needs a second witness, or a person who states that the host is off. */
  HOST_NOT_CONFIRMED: { class: 'POLICY_BLOCKED', recoverable: false },
  STATE_CHANGED: { class: 'POLICY_BLOCKED', recoverable: false },
  /** An undo is refused, because somebody has changed the state that the write left. */
  UNDO_MOVED_ON: { class: 'POLICY_BLOCKED', recoverable: false },
  NOT_PREPARED: { class: 'EXECUTION_FAILED', recoverable: false },
  FORBIDDEN_COMMAND: { class: 'POLICY_BLOCKED', recoverable: false },
  OPTION_ADDED: { class: 'POLICY_BLOCKED', recoverable: true },
  UNBOUNDED_COMMAND: { class: 'POLICY_BLOCKED', recoverable: true },
  /** A command was rewritten to its read-only form. */
  SAFER_FORM: { class: 'POLICY_BLOCKED', recoverable: true },
  UNBOUNDED_QUERY: { class: 'POLICY_BLOCKED', recoverable: true },
  /**
   * A person denied the call. The policy check did not refuse it, but the model reads a denial in
   * the form of a refusal.
   */
  DENIED: { class: 'POLICY_BLOCKED', recoverable: false },
  /** An earlier call ended the turn, because that call was not approved or the run stopped. */
  NOT_RUN: { class: 'APPROVAL_REQUIRED', recoverable: false },
} as const satisfies Record<string, Refusal>

export type RefusalCode = keyof typeof refusals

/** Codes for the reason why a call may run or needs approval. */
export const allowances = [
  'READ',
  'READ_COMMAND',
  'RECORD',
  'TERMINAL',
  'REVERSIBLE_NEAR',
  'APPROVED',
  'GRANTED',
  /** A rule of the configured policy lets the call run, or requires an approval. */
  'SITE_RUNS',
  'SITE_ASKS',
  'DRIFT',
  'REVERSIBLE_FAR',
  /**
   * The call would run automatically, but its tool is not trusted with this in incidents of this
   * type.
   */
  'PROPOSED',
  'UNPROVEN_COMMAND',
  'RISK_LOW',
  'RISK_MEDIUM',
  'RISK_HIGH',
  'RISK_CRITICAL',
] as const
export type AllowCode = (typeof allowances)[number]

export type RulingCode = RefusalCode | AllowCode

/** Returns the meaning of a stored code. An unknown code means a plain policy block. */
export function refusalOf(code: string): Refusal {
  return Object.hasOwn(refusals, code) ? refusals[code as RefusalCode] : { class: 'POLICY_BLOCKED', recoverable: false }
}

/** A target that Nightshift depends on. `why`: the role of the target, such as `its database`. */
export type OwnTarget = { target: string; why: string }

/**
 * Facts that the policy check uses in addition to the log. The facts are read in the transaction of
 * the policy decision, and stored in the decision's row.
 */
export type Policy = {
  incidentId: string
  resource: ResourceRef | null
  role: 'leader' | 'follower'
  paused: boolean
  /**
   * Settings for the called tool, which can only raise the tool's risk and the number of people who
   * must approve.
   */
  raised: { risk: Risk | null; required: number }
  /** Names of the tools that are offered in incidents of this type. Null stands for all tools. */
  offered: readonly string[] | null
  /** The incident's resource and its direct neighbours. */
  vicinity: readonly ResourceRef[]
  /** Digests of actions that a person denied in any incident of the group. */
  denied: readonly string[]
  /**
   * Digests of denied actions of this tool, with one key for each resource (`actionByKeys`). A
   * denial under one name of a resource then applies under all its names. Absent if no action was
   * denied, and in older rows.
   */
  deniedActions?: readonly string[]
  /** The key of each target that has more than one name. */
  keys?: Readonly<Record<string, string>>
  /** Targets to which an incident other than this one is currently writing. */
  busy: readonly { target: string; incidentId: string }[]
  /** Standing grants of this tool that are still valid. The kernel compares action and state. */
  grants: readonly { id: string; actionDigest: string; stateFingerprint: string; grantedAt?: string }[]
  /** The level of trust in this tool in incidents of this type. Absent in older rows. */
  trust?: PairTrust
  /** The alerts of the incident, if the call is an ending. Absent in rows of version 0.1. */
  alerts?: {
    total: number
    firing: number
    unknown: number
    /** How many alerts ended by a sender's word that proves nothing. Absent in older rows. */
    unproven?: number
    /** Why the end of the alerts is uncertain. Absent if it is certain, and in older rows. */
    doubt?: string
    /** How many firing alerts are from senders that never report ends. */
    endless: number
    /**
     * Whether the incident is critical, so that an unproven end needs a person. Absent in older
     * rows.
     */
    isCritical?: boolean
    /** Seconds since the last alert ended; null while an alert fires, or if there is no alert. */
    endedForSeconds: number | null
    /** Seconds without an alert before an incident may end as over. */
    quietSeconds: number
  }
  /**
   * Set if a person requested this write. The write then needs no earlier read, a pause does not
   * stop it, and the person agreed to the state in `stateFingerprint`.
   */
  manual?: { stateFingerprint: string; isUndo?: true }
  /** Whether the incident is a person's question, with nothing to repair. */
  isQuestion?: boolean
  /**
   * Targets that Nightshift depends on. A write to such a target is critical. Absent in older rows.
   */
  own?: readonly OwnTarget[]
  /**
   * The decision of the configured policy about this call. Absent if there is no policy, and in
   * older rows.
   */
  site?: SiteDecisions
  /** An approval of this call that has not expired. The kernel checks that it fits the call. */
  approval: {
    id: string
    callId: string
    actionDigest: string
    stateFingerprint: string
    /** Hosts that the approvers state to be off. Absent if nobody named one, and in older rows. */
    hostIsOff?: readonly string[]
    /**
     * What the configured policy required when people were asked. Absent if it required nothing,
     * and in older rows.
     */
    site?: SiteDemand
  } | null
}

/**
 * Returns the policy facts before anything happened: no action is denied, granted or approved, no
 * target is busy, and all tools are offered.
 */
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
