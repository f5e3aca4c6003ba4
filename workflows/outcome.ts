import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow'

/**
 * A person's decision through Temporal. `token` identifies the person and the approval; a `by`
 * field of the sender is ignored.
 */
export type DecisionMessage = { token: string; approvalId?: string; reason?: string }
export type DecideMessage = DecisionMessage & { decision: 'approve' | 'deny' }
export type DecideAnswer = { outcome: string; status: string | null; message: string | null }

/** Update that judges, records and answers a decision, for callers that want the result. */
export const decide = defineUpdate<DecideAnswer, [DecideMessage]>('decide')
/** Signals with a decision, for `temporal workflow signal` and `tctl`, which get no answer. */
export const approve = defineSignal<[DecisionMessage]>('approve')
export const deny = defineSignal<[DecisionMessage]>('deny')
/** Wakes the run after a decision was recorded elsewhere; the run then reads the row. */
export const decided = defineSignal('decided')
/** Signals that every alert of the incident has ended. */
export const alertResolved = defineSignal('alertResolved')
/** Signals that a person stops the run. A row already holds the person and the reason. */
export const cancelInvestigation = defineSignal('cancelInvestigation')

export type Pending = { approvalId: string; since: number } | null
export const pendingApproval = defineQuery<Pending>('pendingApproval')

/** Signals a group that it may have new work. A lost signal delays the work by at most a minute. */
export const wake = defineSignal('wake')
/** Report of a run to its group: the run waits for a person, works again, or has ended. */
export type ChildReport = 'parked' | 'resumed' | 'ended'
export const report = defineSignal<[string, ChildReport]>('report')

/**
 * A decision as received. `message` is set if its form is right. `texts`: other texts that may be
 * tokens. `bare`: the decision of a signal without any text that may be a token.
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
 * Reads a decision. A signal cannot be refused, so its fields are cut before an activity gets them.
 * Any input is converted to this form, so that no sender can fail the run.
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

/** Cuts a decision's fields to their limits, for runs of version 0.1.0. */
export function boundMessage(message: DecideMessage): DecideMessage {
  return parseDecision('signal', message, message.decision).message ?? { decision: message.decision, token: '' }
}

/**
 * Search attributes by which operators filter investigations in Temporal's UI; all are keywords.
 * Every run fails in a namespace that lacks one of these attributes.
 */
export const searchAttributeNames = ['IncidentType', 'Severity', 'Target', 'Role', 'Status']

/**
 * The fixed set of words that workflow history may contain. Texts, arguments and verdicts stay in
 * rows, so that a rule can change while investigations run, and replay still works. A workflow
 * escalates on an unknown word.
 */

/**
 * The result of a model's turn. `calls`: names of the proposed tools, `unknown` for a name without
 * a tool.
 */
export type TurnOutcome =
  | { kind: 'calls'; calls: string[] }
  | { kind: 'correction' }
  | { kind: 'closed' }
  | { kind: 'unproven' }
  | { kind: 'over_budget'; budget?: 'tokens' | 'bytes' | 'money' }
  | { kind: 'fenced' }
  | { kind: 'interrupted' }
  /** All slots of the model are taken; `ahead` runs wait before this run. */
  | { kind: 'waiting'; ahead: number }
  | { kind: 'failed' }

/** The state of a wait for the model. */
export type SlotWait = { kind: 'ready' } | { kind: 'waiting'; ahead: number }

/** The outcome of one call. */
export type CallOutcome =
  | { kind: 'next' }
  | { kind: 'verify' }
  | { kind: 'ask'; approvalId: string; expiresInMs: number }
  /** The call is judged again after `waitMs`. */
  | { kind: 'wait'; waitMs: number }
  | { kind: 'closed' }
  | { kind: 'indeterminate' }
  | { kind: 'looping' }
  | { kind: 'fenced' }
  | { kind: 'failed' }

export type DecisionStatus = 'pending' | 'approved' | 'denied' | 'expired' | 'withdrawn' | 'consumed'

/** The reason why code ends an investigation; the closing activity writes a sentence for it. */
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
 * The reason why a run stops between two steps: its alerts ended, a person sent a stop signal, or
 * Temporal cancelled it.
 */
export type Interruption = 'alert_resolved' | 'cancel' | 'stopped'
