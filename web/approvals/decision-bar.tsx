import { useState } from 'react'
import type { Approval } from '../../domain/approval.ts'
import { ask } from '../api.ts'
import { RiskMark } from '../marks.tsx'
import { useNow } from '../now.ts'
import { queryClient } from '../query-client.ts'
import { clock, moment } from '../time.ts'

/** Always in sight: how long there is, how risky it is, and the way to each decision. Nothing here decides by itself. */
export function DecisionBar({
  approval,
  refused,
  isArmed,
  onDeny,
  onApprove,
}: {
  approval: Approval
  /** Why this person may not decide; null when they may. */
  refused: string | null
  isArmed: boolean
  onDeny(): void
  onApprove(): void
}) {
  const left = Date.parse(approval.expiresAt) - useNow()
  return (
    <section className="decision-bar" aria-label="Decide">
      <div className="row">
        <span title={`until ${moment(approval.expiresAt)}`}>
          <strong className="countdown">{clock(left)}</strong> left
        </span>
        <RiskMark risk={approval.risk} />
        <span className={approval.reversible ? 'soft' : 'tone-critical strong'}>
          {approval.reversible ? 'reversible' : 'cannot be undone'}
        </span>
      </div>
      <div className="row buttons">
        <button type="button" disabled={refused !== null} onClick={onDeny}>
          Deny…
        </button>
        <button
          type="button"
          className="main"
          disabled={refused !== null}
          aria-disabled={isArmed}
          onClick={() => !isArmed && onApprove()}
        >
          Approve…
        </button>
        <MoreTime approval={approval} refused={refused} />
      </div>
    </section>
  )
}

function MoreTime({ approval, refused }: { approval: Approval; refused: string | null }) {
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState<string | null>(null)
  const extend = async () => {
    setBusy(true)
    setSaid(null)
    try {
      await ask(`/approvals/${approval.id}/extend`, { method: 'POST' })
    } catch (error) {
      setSaid(error instanceof Error ? error.message : 'It was not extended.')
    } finally {
      setBusy(false)
      for (const queryKey of [['approval', approval.id], ['approvals']])
        void queryClient.invalidateQueries({ queryKey })
    }
  }
  return (
    <>
      <button
        type="button"
        className="small"
        disabled={busy || refused !== null}
        title="At most until four hours after it was asked"
        onClick={() => void extend()}
      >
        +15 minutes
      </button>
      {said && (
        <span className="small tone-critical" role="alert">
          {said}
        </span>
      )}
    </>
  )
}
