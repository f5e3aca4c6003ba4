import { useMutation } from '@tanstack/react-query'
import type { Approval } from '../../domain/approval.ts'
import { formatClock } from '../../domain/format.ts'
import { ask } from '../api.ts'
import { RiskMark } from '../marks.tsx'
import { formatMoment, useNow } from '../time.ts'
import { invalidateApproval } from './query.ts'

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
        <span title={`until ${formatMoment(approval.expiresAt)}`}>
          <strong className="countdown">{formatClock(left)}</strong> left
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
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/approvals/${approval.id}/extend`, { method: 'POST' }),
    onSettled: () => invalidateApproval(approval.id),
  })
  return (
    <>
      <button
        type="button"
        className="small"
        disabled={isPending || refused !== null}
        title="At most until four hours after it was asked"
        onClick={() => mutate()}
      >
        +15 minutes
      </button>
      {error && (
        <span className="small tone-critical" role="alert">
          {error.message}
        </span>
      )}
    </>
  )
}
