import { useRef, useState } from 'react'
import type { Approval, ApprovalDetail, Decision } from '../../domain/approval.ts'
import { ApiProblem, ask } from '../api.ts'
import { forgetDrafts } from '../draft.ts'
import { inertText } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { useNow } from '../now.ts'
import { queryClient } from '../query-client.ts'
import { missing, useSession } from '../session.ts'
import { Approve } from './approve.tsx'
import { DecisionBar } from './decision-bar.tsx'
import { Deny } from './deny.tsx'
import { Edit } from './edit.tsx'
import { pendingKey } from './pending.ts'

/** The ways to decide, the one that ends it first. A token for this one decision is minted behind the scenes and sent with it. */
export function Decide({ approval }: { approval: ApprovalDetail }) {
  const { data: session } = useSession()
  const now = useNow()
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const [armed, setArmed] = useState(false)
  const approveArea = useRef<HTMLHeadingElement>(null)
  const denyArea = useRef<HTMLHeadingElement>(null)
  useKeys({
    a: () => approveArea.current?.focus(),
    d: () => toDeny(denyArea.current),
  })
  const isOver = Date.parse(approval.expiresAt) <= now
  if (approval.status !== 'pending' || isOver) return error && <TooLate text={error} />

  const decide = async (decision: Decision, more: Record<string, unknown>) => {
    setBusy(true)
    setError(null)
    try {
      const { token } = await ask<{ token: string }>(`/approvals/${approval.id}/token`, {
        method: 'POST',
        body: { decision },
      })
      await ask(`/approvals/${approval.id}/decision`, { method: 'POST', body: { decision, token, ...more } })
      forgetDrafts(approval.id)
      // The button that was pressed is gone: the keyboard focus goes to the top of the card.
      document.querySelector('h1')?.focus()
    } catch (failure) {
      setError(await explain(failure, approval.id))
    } finally {
      setBusy(false)
      for (const queryKey of [['approval', approval.id], pendingKey, ['approvals', 'list']]) {
        void queryClient.invalidateQueries({ queryKey })
      }
    }
  }
  const refused = missing(session, 'decide')
  return (
    <div className="decide">
      {error && <TooLate text={error} />}
      {refused && <p className="said">{refused} You can read everything here.</p>}
      <section aria-labelledby="deny-title">
        <h2 id="deny-title" ref={denyArea} tabIndex={-1}>
          Deny
        </h2>
        <Deny id={approval.id} disabled={busy || refused !== null} onDeny={(denial) => void decide('deny', denial)} />
      </section>
      <section aria-labelledby="edit-title">
        <h2 id="edit-title">Edit</h2>
        <Edit
          approval={approval}
          disabled={busy || refused !== null}
          onEdit={(edited) => void decide('approve', edited)}
        />
      </section>
      <section aria-labelledby="approve-title">
        <h2 id="approve-title" ref={approveArea} tabIndex={-1}>
          Approve
        </h2>
        <Approve
          approval={approval}
          disabled={busy || refused !== null}
          armed={armed}
          onBack={() => {
            setArmed(false)
            requestAnimationFrame(() => approveArea.current?.focus())
          }}
          onApprove={(grant) => void decide('approve', { grant })}
        />
      </section>
      <DecisionBar
        approval={approval}
        refused={refused}
        isArmed={busy || armed}
        onDeny={() => toDeny(denyArea.current)}
        onApprove={() => isComplete(approveArea.current) && setArmed(true)}
      />
    </div>
  )
}

/** To the first thing that a denial takes; never to a button that does it. */
function toDeny(otherwise: HTMLElement | null): void {
  const field = document.querySelector<HTMLInputElement>('input[name="denial"]:not(:disabled)') ?? otherwise
  field?.focus()
  field?.scrollIntoView({ block: 'center' })
}

/** Is what stands above the first press filled in as it must be? The browser says what is wrong. */
function isComplete(heading: HTMLElement | null): boolean {
  return heading?.parentElement?.querySelector('form')?.reportValidity() ?? true
}

function TooLate({ text }: { text: string }) {
  return (
    <p className="said wrong" role="alert">
      {text}
    </p>
  )
}

/** Late and taken decisions say who was first. */
async function explain(failure: unknown, id: string): Promise<string> {
  if (!(failure instanceof ApiProblem)) return 'Your decision was not sent.'
  if (failure.status === 409 || failure.status === 410) {
    const now = await ask<Approval>(`/approvals/${id}`).catch(() => null)
    const first = now?.decisions[0]
    if (first) {
      const word = first.decision === 'approve' ? 'approved' : 'denied'
      return `Your decision changed nothing: ${inertText(first.operator)} ${word} it before.`
    }
    if (now) return `Your decision changed nothing: it is ${now.status}.`
  }
  return `Your decision was not taken: ${failure.message}`
}
