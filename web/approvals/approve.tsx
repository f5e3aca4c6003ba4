import { useEffect, useRef, useState } from 'react'
import type { Approval } from '../../domain/approval.ts'
import { inertText } from '../inert.tsx'

/** A double click, or a key held down, never gets from the first press to the second. */
const deliberateMs = 800

/**
 * Two presses in two places. After the first the focus is on what is about to be done, not on the button that does it; for
 * the top class the name of the target is typed as well.
 */
export function Approve({
  approval,
  disabled,
  onApprove,
}: {
  approval: Approval
  disabled: boolean
  onApprove(): void
}) {
  const [armed, setArmed] = useState(false)
  const [ready, setReady] = useState(false)
  const [typed, setTyped] = useState('')
  const told = useRef<HTMLParagraphElement>(null)
  const opener = useRef<HTMLButtonElement>(null)
  const target = approval.targets.find(({ kind }) => kind !== 'proposal') ?? approval.targets[0]
  const mustType = approval.risk === 'critical' && target ? target.id : null

  useEffect(() => {
    if (!armed) return
    told.current?.focus()
    const timer = setTimeout(() => setReady(true), deliberateMs)
    return () => clearTimeout(timer)
  }, [armed])

  if (!armed) {
    return (
      <div className="stack tight">
        <p className="soft">Nothing happens yet: you are asked once more.</p>
        <div>
          <button type="button" ref={opener} disabled={disabled} onClick={() => setArmed(true)}>
            Approve…
          </button>
        </div>
      </div>
    )
  }
  const back = () => {
    setArmed(false)
    setReady(false)
    setTyped('')
    requestAnimationFrame(() => opener.current?.focus())
  }
  const isRight = mustType === null || typed.trim() === mustType
  return (
    <fieldset className="confirm stack" aria-label="Second press">
      <p ref={told} tabIndex={-1}>
        <strong>Really: {inertText(approval.dryRun.summary)}?</strong> It is done at once, with your name on it
        {approval.required - approval.approvals > 1 ? ', as soon as another person approves too' : ''}.
      </p>
      {mustType !== null && (
        <label className="stack tight">
          <span>
            Type <code>{inertText(mustType)}</code> to go on
          </span>
          <input type="text" autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
      <div className="row apart">
        <button type="button" onClick={back}>
          Back
        </button>
        <button type="button" className="main" disabled={disabled || !ready || !isRight} onClick={onApprove}>
          Yes, approve
        </button>
      </div>
    </fieldset>
  )
}
