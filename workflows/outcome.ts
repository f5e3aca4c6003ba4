/**
 * The closed words that enter workflow history. Everything else (texts, arguments, verdicts) stays in rows, so that a rule can
 * change while investigations run and none breaks on replay. A word a workflow does not know escalates.
 */

/** What a turn of the model came to. `calls` names the proposed tools, `unknown` for a name that no tool has. */
export type Thought =
  | { kind: 'calls'; calls: string[] }
  | { kind: 'correction' }
  | { kind: 'closed' }
  | { kind: 'unproven' }
  | { kind: 'over_budget'; budget?: 'tokens' | 'bytes' }
  | { kind: 'fenced' }
  | { kind: 'interrupted' }
  /** As many as may ask the model ask it: this one has a place in the line. */
  | { kind: 'waiting'; ahead: number }
  | { kind: 'failed' }

/** How a wait for the model stands. */
export type Waited = { kind: 'ready' } | { kind: 'waiting'; ahead: number }

/** What one call came to. */
export type Act =
  | { kind: 'next' }
  | { kind: 'verify' }
  | { kind: 'ask'; approvalId: string; expiresInMs: number }
  /** The call stands and is judged again after this time. */
  | { kind: 'wait'; waitMs: number }
  | { kind: 'closed' }
  | { kind: 'indeterminate' }
  | { kind: 'looping' }
  | { kind: 'fenced' }
  | { kind: 'failed' }

export type DecisionStatus = 'pending' | 'approved' | 'denied' | 'expired' | 'withdrawn' | 'consumed'

/** Why code ends an investigation: the reason's sentence is written by the activity that closes the incident. */
export type EscalationCode =
  | 'CONTEXT_FAILED'
  | 'MODEL_UNAVAILABLE'
  | 'TURN_LIMIT'
  | 'TIME_BUDGET'
  | 'TOKEN_BUDGET'
  | 'BYTE_BUDGET'
  | 'LOOP'
  | 'CORRECTION_LIMIT'
  | 'UNPROVEN_ANSWER'
  | 'APPROVAL_EXPIRED'
  | 'APPROVAL_LOOP'
  | 'INDETERMINATE'
  | 'ACT_FAILED'
  | 'UNKNOWN_OUTCOME'

export type LoopEnd = { end: 'closed' } | { end: 'fenced' } | { end: 'escalate'; code: EscalationCode; turn: number }

/** What asks a run to stop between two steps: its alerts ended, a signal says that a person wants it, or Temporal cancelled it. */
export type Interruption = 'alert_resolved' | 'cancel' | 'stopped'
