import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow'

/**
 * A person's decision by Temporal. `token` says who decides and about what; a sender's `by` is
 * ignored.
 */
export type DecisionMessage = { token: string; approvalId?: string; reason?: string }
export type DecideMessage = DecisionMessage & { decision: 'approve' | 'deny' }
export type DecideAnswer = { outcome: string; status: string | null; message: string | null }

/** Judged, recorded and answered: for callers that want to know. */
export const decide = defineUpdate<DecideAnswer, [DecideMessage]>('decide')
/** The same for `temporal workflow signal` and `tctl`, which cannot be answered. */
export const approve = defineSignal<[DecisionMessage]>('approve')
export const deny = defineSignal<[DecisionMessage]>('deny')
/** Only a wake: a decision was recorded elsewhere, and the row is to be read. */
export const decided = defineSignal('decided')
/** Every alert of the incident has ended. */
export const alertResolved = defineSignal('alertResolved')
/** A person stops the run. Who and why is a row already. */
export const cancelInvestigation = defineSignal('cancelInvestigation')

export type Pending = { approvalId: string; since: number } | null
export const pendingApproval = defineQuery<Pending>('pendingApproval')

/** To a group: there may be something new to do. Lost, it costs a minute. */
export const wake = defineSignal('wake')
/** From a child to its group: it waits for a person, works again, or has ended. */
export type ChildReport = 'parked' | 'resumed' | 'ended'
export const report = defineSignal<[string, ChildReport]>('report')

/**
 * A decision as it arrived: `message` where its form is right, `texts` what else may be a decision
 * token. `bare`: a signal of this verdict without anything like a token.
 */
export type ReceivedDecision = {
  door: 'signal' | 'update'
  message: DecideMessage | null
  texts: string[]
  bare?: 'approve' | 'deny'
}

const tokenForm = /(?<![\w-])[\w-]{43}(?![\w-])/g
const textsKept = 5

/**
 * A Signal cannot be refused, only cut: a flood of megabytes must not become an activity's input.
 * Any sent thing comes out in this form, so that no sender can fail the run.
 */
export function parseDecision(
  door: ReceivedDecision['door'],
  sent: unknown,
  decision: 'approve' | 'deny',
): ReceivedDecision {
  const cut = (text: unknown, limit: number) => (typeof text === 'string' ? text.slice(0, limit) : undefined)
  const fields: Record<string, unknown> = typeof sent === 'object' && sent !== null ? { ...sent } : {}
  const token = cut(fields.token, 200)
  const texts = tokenTexts(sent).filter((text) => text !== token)
  if (token === undefined) {
    const isBare = door === 'signal' && texts.length === 0
    return { door, message: null, texts, ...(isBare && { bare: decision }) }
  }
  const [approvalId, reason] = [cut(fields.approvalId, 100), cut(fields.reason, 2_000)]
  const message: DecideMessage = {
    decision,
    token,
    ...(approvalId === undefined ? {} : { approvalId }),
    ...(reason === undefined ? {} : { reason }),
  }
  return { door, message, texts }
}

function tokenTexts(sent: unknown): string[] {
  const text = typeof sent === 'string' ? sent : (JSON.stringify(sent) ?? '')
  return [...new Set(text.slice(0, 10_000).match(tokenForm))].slice(0, textsKept)
}

/** The same for runs that began with version 0.1.0. */
export function boundMessage(message: DecideMessage): DecideMessage {
  return parseDecision('signal', message, message.decision).message ?? { decision: message.decision, token: '' }
}

/**
 * Keys by which operators filter investigations in Temporal's UI; all are keywords. A namespace
 * without one fails every run.
 */
export const searchAttributeNames = ['IncidentType', 'Severity', 'Target', 'Role', 'Status']

/**
 * The closed words of workflow history. The rest (texts, arguments, verdicts) stays in rows, so
 * that a rule can change while investigations run and none breaks on replay. A word unknown to a
 * workflow escalates.
 */

/** The result of a model's turn. `calls`: the proposed tools, `unknown` for no tool's name. */
export type TurnOutcome =
  | { kind: 'calls'; calls: string[] }
  | { kind: 'correction' }
  | { kind: 'closed' }
  | { kind: 'unproven' }
  | { kind: 'over_budget'; budget?: 'tokens' | 'bytes' | 'money' }
  | { kind: 'fenced' }
  | { kind: 'interrupted' }
  /** As many as may ask the model ask it: this one has a place in the line. */
  | { kind: 'waiting'; ahead: number }
  | { kind: 'failed' }

/** How a wait for the model stands. */
export type SlotWait = { kind: 'ready' } | { kind: 'waiting'; ahead: number }

/** What one call came to. */
export type CallOutcome =
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

/** The reason why code ends an investigation: the closing activity writes its sentence. */
export type EscalationCode =
  | 'CONTEXT_FAILED'
  | 'MODEL_UNAVAILABLE'
  | 'TURN_LIMIT'
  | 'TIME_BUDGET'
  | 'TOKEN_BUDGET'
  | 'MONEY_BUDGET'
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

/**
 * Reasons to stop between two steps: the alerts ended, a signal says that a person wants it, or
 * Temporal cancelled it.
 */
export type Interruption = 'alert_resolved' | 'cancel' | 'stopped'
