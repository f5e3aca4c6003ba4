import { useMutation } from '@tanstack/react-query'
import type { Approval, Decision } from '../../domain/approval.ts'
import { ApiRefusal, ask, type ListPage, queryClient, useAsk } from '../api.ts'
import { forgetDrafts } from '../fields.tsx'
import { inertText } from '../inert.tsx'

const pendingKey = ['approvals', 'pending']
export const listKey = ['approvals', 'list']
export const grantsKey = ['grants']

/**
 * Everything that waits for a person; asked again by the stream, and each minute, since approvals
 * expire.
 */
export function usePendingApprovals() {
  const query = useAsk<ListPage<Approval>>(pendingKey, '/approvals?status=pending&limit=100', {
    refetchInterval: 60_000,
  })
  return { ...query, items: query.data?.items ?? [], count: query.data?.items.length ?? 0 }
}

/** A row about an approval: every list of them and every shown card is asked again. */
export function invalidateApprovals(): void {
  for (const queryKey of [pendingKey, ['approval'], listKey, grantsKey])
    void queryClient.invalidateQueries({ queryKey })
}

/** The same after an act of this person on one of them. */
export function invalidateApproval(id: string): void {
  for (const queryKey of [['approval', id], pendingKey, listKey]) void queryClient.invalidateQueries({ queryKey })
}

/** A decision with its parts: a category and reason, changed arguments, a standing grant. */
type DecisionRequest = {
  decision: Decision
  /** Those it is for, in the order in which they are sent: the rest is not sent where one fails. */
  ids: string[]
  reason?: string
  category?: string
  args?: unknown
  grant?: unknown
  hostIsOff?: string[]
}

/** Sends a decision, with a token made for it behind the scenes. Its error says who was first. */
export function useDecision(id: string) {
  return useMutation({
    mutationFn: async ({ decision, ids, args, grant, hostIsOff, ...more }: DecisionRequest) => {
      for (const [sent, each] of ids.entries()) {
        // Changed arguments, a grant, and a host's statement are for this card's approval.
        const said = { decision, ...more, ...(each === id && { args, grant, hostIsOff }) }
        try {
          const { token } = await ask<{ token: string }>(`/approvals/${each}/token`, { method: 'POST', body: said })
          await ask(`/approvals/${each}/decision`, { method: 'POST', body: { ...said, token } })
        } catch (failure) {
          const before = sent === 0 ? '' : `${sent} of ${ids.length} decisions were recorded. The next: `
          const said = `${before}${await explain(failure, each)}`
          if (!(failure instanceof ApiRefusal)) throw new Error(said)
          throw new ApiRefusal(failure.status, failure.code, said, failure.errors)
        }
      }
    },
    onSuccess: () => {
      forgetDrafts(id)
      // The button that was pressed is gone: the keyboard focus goes to the top of the card.
      document.querySelector('h1')?.focus()
    },
    // Each shows how the others of its card stand.
    onSettled: () => invalidateApprovals(),
  })
}

/** Late and taken decisions say who was first. */
async function explain(failure: unknown, id: string): Promise<string> {
  if (!(failure instanceof ApiRefusal)) return 'Your decision was not sent.'
  if (failure.status === 409 || failure.status === 410) {
    const now = await ask<Approval>(`/approvals/${id}`).catch(() => null)
    const first = now?.decisions[0]
    if (first) {
      const word = first.decision === 'approve' ? 'approved' : 'denied'
      return `Your decision changed nothing: ${inertText(first.operator)} already ${word} it.`
    }
    if (now) return `Your decision changed nothing: the approval is already ${now.status}.`
  }
  return `Your decision was not recorded: ${failure.message}`
}
