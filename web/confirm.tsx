import { type FormEvent, type ReactNode, useRef, useState } from 'react'
import { Failed } from './states.tsx'

/** A button that opens a dialog which does the thing; where it may not be done, the button is off and says why. */
export function Confirm({
  button,
  label,
  title,
  refused = null,
  onOpen,
  run,
  children,
}: {
  button: string
  /** What the button is about, for who hears the page. */
  label: string
  title: string
  refused?: string | null
  onOpen?(): void
  /** Does it; what it throws is shown and the dialog stays. */
  run(): Promise<void>
  children: ReactNode
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const open = () => {
    if (refused !== null) return
    setError(null)
    onOpen?.()
    dialog.current?.showModal()
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await run()
      dialog.current?.close()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  const name = `${button} ${label}`
  return (
    <>
      <button
        type="button"
        aria-disabled={refused !== null}
        aria-label={refused === null ? name : `${name}. ${refused}`}
        title={refused ?? undefined}
        onClick={open}
      >
        {button}
      </button>
      <dialog ref={dialog} aria-label={title}>
        <form className="stack" onSubmit={submit}>
          <h2>{title}</h2>
          {children}
          {error !== null && <Failed error={error} />}
          <div className="row">
            <button type="button" onClick={() => dialog.current?.close()}>
              Back
            </button>
            <button type="submit" className="main" disabled={busy}>
              {button}
            </button>
          </div>
        </form>
      </dialog>
    </>
  )
}
