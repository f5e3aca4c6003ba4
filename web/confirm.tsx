import { useMutation } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, type RefObject, useRef } from 'react'
import { Failed } from './page-frame.tsx'

type Props = {
  button: string
  /** What the button is about, for who hears the page. */
  label: string
  title: string
  /** Why it may not be done; null when it may. */
  refused?: string | null
  onOpen?(): void
  /** Does it; what it throws is shown and the dialog stays. */
  run(): Promise<void>
  children: ReactNode
}

/** A button that opens a dialog which does the thing; where it may not be done, the button is off and says why. */
export function Confirm({ button, label, title, refused = null, onOpen, run, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const { mutate, reset, error, isPending } = useMutation({
    mutationFn: () => run(),
    onSuccess: () => dialog.current?.close(),
  })
  const open = () => {
    if (refused !== null) return
    reset()
    onOpen?.()
    dialog.current?.showModal()
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
      <FormDialog dialog={dialog} title={title} button={button} isBusy={isPending} error={error} onSubmit={mutate}>
        {children}
      </FormDialog>
    </>
  )
}

type DialogProps = {
  dialog: RefObject<HTMLDialogElement | null>
  title: string
  button: string
  isBusy: boolean
  error: unknown
  onSubmit(): void
  children: ReactNode
}

function FormDialog({ dialog, title, button, isBusy, error, onSubmit, children }: DialogProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return (
    <dialog ref={dialog} aria-label={title}>
      <form className="stack" onSubmit={submit}>
        <h2>{title}</h2>
        {children}
        {error !== null && <Failed error={error} />}
        <div className="row">
          <button type="button" onClick={() => dialog.current?.close()}>
            Back
          </button>
          <button type="submit" className="main" disabled={isBusy}>
            {button}
          </button>
        </div>
      </form>
    </dialog>
  )
}
