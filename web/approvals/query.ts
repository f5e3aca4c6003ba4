import { useMutation } from '@tanstack/react-query'
import type { Approval, Decision } from '../../domain/approval.ts'
import { ApiRefusal, ask, type ListPage, readAgain, useAsk } from '../api.ts'
import { forgetDrafts } from '../fields.tsx'
import { inertText } from '../inert.tsx'

const pendingKey = ['approvals', 'pending']
export const listKey = ['approvals', 'list']
export const grantsKey = ['grants']

/**
 * Reads everything that waits for a person, again on stream events, and every minute because
 * approvals expire.
 */
export function usePendingApprovals() {
  const query = useAsk<ListPage<Approval>>(pendingKey, '/approvals?status=pending&limit=100', {
    refetchInterval: 60_000,
  })
  return { ...query, items: query.data?.items ?? [], count: query.data?.items.length ?? 0 }
}

/** Reads every list and card of approvals again after a row about an approval. */
export function invalidateApprovals(): void {
  void readAgain(pendingKey, ['approval'], listKey, grantsKey)
}

/** Reads the lists and one card again after an action of this person on this approval. */
export function invalidateApproval(id: string): void {
  void readAgain(['approval', id], pendingKey, listKey)
}

/** A decision: optional category and reason, changed arguments, and a standing grant. */
type DecisionRequest = {
  decision: Decision
  /** The approvals in the order in which they are sent. After a failure the rest is not sent. */
  ids: string[]
  reason?: string
  category?: string
  args?: unknown
  grant?: unknown
  hostIsOff?: string[]
}

/**
 * Sends a decision, with a token that is created internally. The error of a failed decision names
 * who decided first.
 */
export function useDecision(id: string) {
  return useMutation({
    mutationFn: async ({ decision, ids, args, grant, hostIsOff, ...more }: DecisionRequest) => {
      for (const [sent, each] of ids.entries()) {
        // Changed arguments, a grant, and the statement that a host is off apply only to the
        // approval of this card.
        const said = { decision, ...more, ...(each === id && { args, grant, hostIsOff }) }
        try {
          const { token } = await ask<{ token: string }>(`/approvals/${each}/token`, { method: 'POST', body: said })
          await ask(`/approvals/${each}/decision`, { method: 'POST', body: { ...said, token } })
        } catch (failure) {
          const before =
            sent === 0 ? '' : `${sent} of ${ids.length} decisions were recorded. The next decision failed: `
          const said = `${before}${await explain(failure, each)}`
          if (!(failure instanceof ApiRefusal)) throw new Error(said)
          throw new ApiRefusal(failure.status, failure.code, said, failure.errors)
        }
      }
    },
    onSuccess: () => {
      forgetDrafts(id)
      // Moves the focus to the top of the card, because the pressed button no longer exists.
      document.querySelector('h1')?.focus()
    },
    // Reads all approvals again, because each shows the state of the others on its card.
    onSettled: () => invalidateApprovals(),
  })
}

/** Adds to the error who decided first, if the decision came too late. */
async function explain(failure: unknown, id: string): Promise<string> {
  if (!(failure instanceof ApiRefusal)) return 'Your decision was not sent.'
  if (failure.status === 409 || failure.status === 410) {
    const now = await ask<Approval>(`/approvals/${id}`).catch(() => null)
    const first = now?.decisions[0]
    if (first) {
      const word = first.decision === 'approve' ? 'approved' : 'denied'
      return `Your decision changed nothing: ${inertText(first.operator)} already ${word} the action.`
    }
    if (now) return `Your decision changed nothing: the approval is ${now.status}.`
  }
  return `Your decision was not recorded: ${failure.message}`
}
