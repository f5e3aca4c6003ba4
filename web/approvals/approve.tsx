import { useRef, useState } from 'react'
import type { ApprovalDetail, GrantWish } from '../../domain/approval.ts'
import { inertText } from '../inert.tsx'
import { Grant } from './grant.tsx'
import { mustType } from './must-type.ts'
import { SecondPress } from './second-press.tsx'

/** Two presses in two places; a standing grant, where it may be given, is asked for before the first. */
export function Approve({
  approval,
  disabled,
  onApprove,
}: {
  approval: ApprovalDetail
  disabled: boolean
  onApprove(grant: GrantWish | null): void
}) {
  const [armed, setArmed] = useState(false)
  const [grant, setGrant] = useState<GrantWish | null>(null)
  const opener = useRef<HTMLButtonElement>(null)
  const back = () => {
    setArmed(false)
    requestAnimationFrame(() => opener.current?.focus())
  }
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault()
        setArmed(true)
      }}
    >
      <Grant refused={approval.grantRefused} disabled={disabled || armed} wish={grant} onWish={setGrant} />
      {armed ? (
        <SecondPress
          button="Yes, approve"
          mustType={mustType(approval)}
          disabled={disabled}
          onYes={() => onApprove(grant)}
          onBack={back}
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
        <>
          <p className="soft">Nothing happens yet: you are asked once more.</p>
          <div>
            <button type="submit" ref={opener} disabled={disabled}>
              Approve…
            </button>
          </div>
        </>
      )}
    </form>
  )
}
