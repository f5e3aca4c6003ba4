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
}

/** Among corrections: a person changed the arguments before approving. */
export const editedByPerson = 'EDITED_BY_PERSON'

/** Every way a call is refused. The finer word stands in `error.details.rule` and on the `call_judged` row. */
export const refusals = {
  UNKNOWN_TOOL: { class: 'ACTION_NOT_ALLOWED', recoverable: false },
  NOT_OFFERED: { class: 'ACTION_NOT_ALLOWED', recoverable: false },
  MALFORMED_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false },
  INVALID_ARGUMENTS: { class: 'INVALID_INPUT', recoverable: false },
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
  /** Not an error: the ending is kept and judged again when the alerts were quiet for long enough. */
  NOT_QUIET_YET: { class: 'FSM_BLOCKED', recoverable: true },
  NO_ALERT: { class: 'POLICY_BLOCKED', recoverable: true },
  IS_A_QUESTION: { class: 'INVALID_INPUT', recoverable: true },
  NO_QUESTION: { class: 'INVALID_INPUT', recoverable: true },
  NOTHING_WRITTEN: { class: 'POLICY_BLOCKED', recoverable: true },
  REPAIR_NOT_VERIFIED: { class: 'POLICY_BLOCKED', recoverable: true },
  WROTE_SOMETHING: { class: 'POLICY_BLOCKED', recoverable: true },
  CLAIM_NOT_SHOWN: { class: 'POLICY_BLOCKED', recoverable: true },
  PHANTOM_CLAIM: { class: 'POLICY_BLOCKED', recoverable: true },
  PAUSED: { class: 'POLICY_BLOCKED', recoverable: false },
  DENIED_BEFORE: { class: 'POLICY_BLOCKED', recoverable: false, loop: true },
  DECIDED_ELSEWHERE: { class: 'POLICY_BLOCKED', recoverable: false },
  TARGET_BUSY: { class: 'POLICY_BLOCKED', recoverable: false },
  NOT_PREPARED: { class: 'EXECUTION_FAILED', recoverable: false },
  FORBIDDEN_COMMAND: { class: 'POLICY_BLOCKED', recoverable: false },
  UNBOUNDED_COMMAND: { class: 'POLICY_BLOCKED', recoverable: true },
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
  'DRIFT',
  'REVERSIBLE_FAR',
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
