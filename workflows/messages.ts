import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow'

/**
 * A person's decision as it comes through Temporal. `token` says who decides and about what; `by`, where a sender adds it, is
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

/** A Signal cannot be refused, only cut: a flood of megabytes must not become an activity's input. */
export function inBounds(message: DecideMessage): DecideMessage {
  const cut = (text: unknown, limit: number) => (typeof text === 'string' ? text.slice(0, limit) : undefined)
  const { decision } = message
  const [approvalId, reason] = [cut(message.approvalId, 100), cut(message.reason, 2_000)]
  return {
    decision,
    token: cut(message.token, 200) ?? '',
    ...(approvalId === undefined ? {} : { approvalId }),
    ...(reason === undefined ? {} : { reason }),
  }
}
