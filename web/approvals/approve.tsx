import { useState } from 'react'
import type { Approval, ApprovalDetail, GrantWish } from '../../domain/approval.ts'
import { inertText } from '../inert.tsx'
import { Grant } from './grant.tsx'
import { SecondPress } from './second-press.tsx'

/** The second of two presses: the first is in the bar. A standing grant, where it may be given, is asked for before the first. */
export function Approve({
  approval,
  disabled,
  armed,
  onBack,
  onApprove,
}: {
  approval: ApprovalDetail
  disabled: boolean
  /** The first press was done. */
  armed: boolean
  onBack(): void
  onApprove(grant: GrantWish | null): void
}) {
  const [grant, setGrant] = useState<GrantWish | null>(null)
  return (
    <form className="stack" onSubmit={(event) => event.preventDefault()}>
      <Grant refused={approval.grantRefused} disabled={disabled || armed} wish={grant} onWish={setGrant} />
      {armed ? (
        <SecondPress
          button="Yes, approve"
          mustType={mustType(approval)}
          disabled={disabled}
          onYes={() => onApprove(grant)}
          onBack={onBack}
        >
          <strong>Really: {inertText(approval.dryRun.summary)}?</strong> It is done at once, with your name on it
          {approval.required - approval.approvals > 1 ? ', as soon as another person approves too' : ''}.
          {grant && (
            <>
              {' '}
              The very same may then run {grant.uses === 1 ? 'once more' : `${grant.uses} more times`} within{' '}
              {grant.hours} h, and <strong>nobody is asked</strong>.
            </>
          )}
        </SecondPress>
      ) : (
        <p className="soft">With “Approve…” below nothing happens yet: you are asked once more.</p>
      )}
    </form>
  )
}

/** For the top class the name of its target is typed before it is approved. */
export function mustType({ risk, targets }: Pick<Approval, 'risk' | 'targets'>): string | null {
  const target = targets.find(({ kind }) => kind !== 'proposal') ?? targets[0]
  return risk === 'critical' && target ? target.id : null
}
