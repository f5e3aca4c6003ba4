import type { ResourceRef } from './registry.ts'
import type { SiteDecisions, SiteDemand } from './site-decision.ts'
import type { Risk } from './tool.ts'
import type { PairTrust } from './trust.ts'

/**
 * Error codes for a model, in `error.code`. A fixed, short list. Each code shows what the model can
 * do.
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
   * Whether the hint helps the model. The refusal counts as recovered if the same tool then
   * succeeds.
   */
  recoverable: boolean
  /** A sign of a loop. Three refusals with such a code in one attempt end the attempt. */
  loop?: true
  /** The call could not be parsed. Three turns in a row with such a code end the attempt. */
  form?: true
}

/** The code of a correction by a person, who changed the arguments before approving. */
export const editedByPerson = 'EDITED_BY_PERSON'

/**
 * Codes of refused calls. The exact code is in `error.details.rule` and in the `call_judged` row.
 */
export const refusals = {
  UNKNOWN_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: false, form: true },
  NOT_OFFERED: { class: 'ACTION_NOT_ALLOWED', recoverable: false },
  MALFORMED_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false, form: true },
  INVALID_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false, form: true },
  /** A call was found in the text of a response, or its JSON was corrected. */
  CALL_AS_TEXT: { class: 'INVALID_INPUT', recoverable: true },
  /** A value was converted to its obvious meaning. */
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
  /** Not an error: the ending is kept and checked again once the alerts were quiet long enough. */
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
   * A command that needs approval although a tool without approval gives the same result. Refused
   * only once for each command.
   */
  FREE_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: true },
  /** A call that code itself made, but that would write or need approval. */
  NOT_A_FREE_LOOK: { class: 'POLICY_BLOCKED', recoverable: false },
  DECIDED_ELSEWHERE: { class: 'POLICY_BLOCKED', recoverable: false },
  /**
   * The tool is in shadow for this incident type. The call is recorded for people, but not
   * executed.
   */
  SHADOW: { class: 'POLICY_BLOCKED', recoverable: false },
  TARGET_BUSY: { class: 'POLICY_BLOCKED', recoverable: false },
  /** A host whose VMs would start elsewhere was recently seen alive. Nothing overrides this. */
  WITNESSES_DISAGREE: { class: 'POLICY_BLOCKED', recoverable: false },
  /** Starting VMs elsewhere needs a second witness, or a person who states that the host is off. */
  HOST_NOT_CONFIRMED: { class: 'POLICY_BLOCKED', recoverable: false },
  STATE_CHANGED: { class: 'POLICY_BLOCKED', recoverable: false },
  /** An undo is refused, because somebody has changed what the write left. */
  UNDO_MOVED_ON: { class: 'POLICY_BLOCKED', recoverable: false },
  NOT_PREPARED: { class: 'EXECUTION_FAILED', recoverable: false },
  FORBIDDEN_COMMAND: { class: 'POLICY_BLOCKED', recoverable: false },
  OPTION_ADDED: { class: 'POLICY_BLOCKED', recoverable: true },
  UNBOUNDED_COMMAND: { class: 'POLICY_BLOCKED', recoverable: true },
  /** A command was rewritten to its read-only form. */
  SAFER_FORM: { class: 'POLICY_BLOCKED', recoverable: true },
  UNBOUNDED_QUERY: { class: 'POLICY_BLOCKED', recoverable: true },
  /**
   * A denial by a person. The policy check did not refuse the call, but the model reads the denial
   * in the same form.
   */
  DENIED: { class: 'POLICY_BLOCKED', recoverable: false },
  /** An earlier call ended the turn, because its approval was not given or the run stopped. */
  NOT_RUN: { class: 'APPROVAL_REQUIRED', recoverable: false },
} as const satisfies Record<string, Refusal>

export type RefusalCode = keyof typeof refusals

/** Codes for why a call may run or needs approval. */
export const allowances = [
  'READ',
  'READ_COMMAND',
  'RECORD',
  'TERMINAL',
  'REVERSIBLE_NEAR',
  'APPROVED',
  'GRANTED',
  /** A rule of the configured policy lets the call run, or requires approval. */
  'SITE_RUNS',
  'SITE_ASKS',
  'DRIFT',
  'REVERSIBLE_FAR',
  /**
   * The call would run automatically, but its tool is not trusted to do so in incidents of this
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

/** Returns the meaning of a stored code. An unknown code is a plain policy block. */
export function refusalOf(code: string): Refusal {
  return Object.hasOwn(refusals, code) ? refusals[code as RefusalCode] : { class: 'POLICY_BLOCKED', recoverable: false }
}

/** A target that Nightshift itself depends on. `why`: in which role, such as `its database`. */
export type OwnTarget = { target: string; why: string }

/**
 * Facts that the policy check uses in addition to the log. The facts are read in the transaction of
 * the decision, and stored in its row.
 */
export type Policy = {
  incidentId: string
  resource: ResourceRef | null
  role: 'leader' | 'follower'
  paused: boolean
  /**
   * Settings for this tool. The settings can only raise the tool's risk and the number of people
   * who must approve.
   */
  raised: { risk: Risk | null; required: number }
  /** Names of the tools that are offered in this type of incident. Null stands for all tools. */
  offered: readonly string[] | null
  /** The incident's resource and its direct neighbours. */
  vicinity: readonly ResourceRef[]
  /** Digests of actions that a person denied anywhere in the group. */
  denied: readonly string[]
  /**
   * Denied actions of this tool, with one key for each resource (`actionByKeys`), because the same
   * action has another digest under another name. Absent if none was denied, and in older rows.
   */
  deniedActions?: readonly string[]
  /** The key of each target that has more than one name. */
  keys?: Readonly<Record<string, string>>
  /** Targets to which another incident is currently writing. */
  busy: readonly { target: string; incidentId: string }[]
  /** Standing grants of this tool that can still be used. The kernel compares their action. */
  grants: readonly { id: string; actionDigest: string; stateFingerprint: string; grantedAt?: string }[]
  /** The level of trust of this tool in incidents of this type. Absent in older rows. */
  trust?: PairTrust
  /** The alerts of the incident, if an ending is checked. Absent in rows of version 0.1. */
  alerts?: {
    total: number
    firing: number
    unknown: number
    /** Alerts that ended by a sender's word that proves nothing. Absent in older rows. */
    unproven?: number
    /** Why it is unknown whether the alerts ended. Absent if it is known, and in older rows. */
    doubt?: string
    /** Firing alerts of senders that never report ends. */
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
   * Set if a person requested this write. Such a write needs no earlier read, a pause does not stop
   * the write, and the person agreed to this state.
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
  /** A person's approval of this call that has not expired. The kernel checks that it matches. */
  approval: {
    id: string
    callId: string
    actionDigest: string
    stateFingerprint: string
    /** Hosts that the approvers state to be off. Absent if there are none, and in older rows. */
    hostIsOff?: readonly string[]
    /**
     * The demand of the configured policy when people were asked. Absent if it demanded nothing,
     * and in older rows.
     */
    site?: SiteDemand
  } | null
}

/**
 * Returns the policy facts before anything happened: nothing denied, leased, granted or approved,
 * and all tools offered.
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
