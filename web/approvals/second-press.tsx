import { type ReactNode, useEffect, useRef, useState } from 'react'
import { inertText } from '../inert.tsx'

/** A double click, or a key held down, never gets from the first press to the second. */
const deliberateMs = 800

/**
 * The second of two presses, in another place than the first. The focus is on what is about to be done, not on the button that
 * does it; where `mustType` names something, that is typed as well.
 */
export function SecondPress({
  children,
  button,
  mustType,
  disabled,
  onYes,
  onBack,
}: {
  children: ReactNode
  button: string
  mustType: string | null
  disabled: boolean
  onYes(): void
  onBack(): void
}) {
  const [ready, setReady] = useState(false)
  const [typed, setTyped] = useState('')
  const told = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    told.current?.focus()
    told.current?.closest('fieldset')?.scrollIntoView({ block: 'nearest' })
    // The second click of a double click, wherever it lands, must not take the focus off what is about to be done.
    const stay = (event: MouseEvent) => event.preventDefault()
    const letGo = () => document.removeEventListener('mousedown', stay, true)
    document.addEventListener('mousedown', stay, true)
    const timer = setTimeout(() => {
      letGo()
      setReady(true)
    }, deliberateMs)
    return () => {
      letGo()
      clearTimeout(timer)
    }
  }, [])
  const isRight = mustType === null || typed.trim() === mustType
  return (
    <fieldset className="confirm stack" aria-label="Second press">
      <p ref={told} tabIndex={-1} className="wraps">
        {children}
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
        <button type="button" onClick={onBack}>
          Back
        </button>
        <button type="button" className="main" disabled={disabled || !ready || !isRight} onClick={onYes}>
          {button}
        </button>
      </div>
    </fieldset>
  )
}
