import { type UseQueryResult, useMutation } from '@tanstack/react-query'
import {
  type ComponentProps,
  createContext,
  type FormEvent,
  type ReactNode,
  type RefObject,
  useContext,
  useEffect,
  useRef,
  useState,
} from 'react'
import { createPortal } from 'react-dom'
import { formatSpan } from '../domain/format.ts'
import { ApiRefusal, queryClient, useAway } from './api.ts'
import { usePendingApprovals } from './approvals/query.ts'
import { sayRefusedFields } from './field-faults.ts'
import { Link } from './router.tsx'
import { formatTimeOfDay, useNow } from './time.ts'

let first = true

/**
 * The place in the top bar for the name of the page. Null until the bar is drawn, and without a
 * bar.
 */
export const WhereContext = createContext<HTMLElement | null>(null)

type HeadingProps = {
  title: string
  /**
   * The list to which the object belongs. If set, the heading is in the page, and otherwise in the
   * top bar.
   */
  of?: { href: string; title: string }
  children?: ReactNode
}

/**
 * Shows the heading of a page. Sets the name of the tab with the number of waiting approvals. Takes
 * the focus after a page change, so that a screen reader begins here and no button gets a key that
 * was meant for the previous page.
 */
export function Heading({ title, of, children }: HeadingProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const where = useContext(WhereContext)
  const { count } = usePendingApprovals()
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}${title} · Nightshift`
  }, [title, count])
  useEffect(() => {
    if (!where) return
    if (!first && !location.hash) heading.current?.focus()
    first = false
  }, [where])
  const words = (
    <h1 ref={heading} tabIndex={-1}>
      {children ?? title}
    </h1>
  )
  if (!of) return where && createPortal(words, where)
  return (
    <>
      {where &&
        createPortal(
          <>
            <Link href={of.href}>{of.title}</Link> <span className="soft">/</span>{' '}
            <b>
              <bdi>{title}</bdi>
            </b>
          </>,
          where,
        )}
      {words}
    </>
  )
}

export function Brand() {
  return (
    <a className="brand" href="/home">
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#171b2a" stroke="#66708a" strokeWidth="1" />
        <path d="M21.5 20.8A9 9 0 0 1 12.2 7.4a9.6 9.6 0 1 0 11.9 12.2 9 9 0 0 1-2.6 1.2z" fill="#f2b95c" />
      </svg>
      <span>Nightshift</span>
    </a>
  )
}

/**
 * Text that is shown while content loads. Like the components for failed and missing content, it
 * names the possible action.
 */
export function Loading({ what }: { what: string }) {
  return (
    <p className="nothing" role="status">
      Loading {what}…
    </p>
  )
}

/**
 * Shows an error. `isKept`: earlier data is still shown, and the page shows once that the server is
 * away.
 */
export function Failed({ error, again, isKept = false }: { error: unknown; again?: () => void; isKept?: boolean }) {
  const [named, setNamed] = useState<string | null>(null)
  const text = named ?? (error instanceof Error ? error.message : 'Something failed.')
  const isAway = error instanceof ApiRefusal && (error.status === 0 || error.status >= 502)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const form = place.current?.closest('form')
    // Waits for a frame, because a form is locked while it is sent, and a locked field takes no
    // focus.
    setNamed(null)
    if (form && error instanceof ApiRefusal) requestAnimationFrame(() => setNamed(sayRefusedFields(form, error)))
  }, [error])
  if (isAway && isKept) return null
  return (
    <div ref={place} className="said wrong stack" role="alert">
      <p>
        <strong>{text}</strong>
      </p>
      {again && (
        <p>
          <button type="button" onClick={again}>
            Try again
          </button>
        </p>
      )}
    </div>
  )
}

type Answer = Pick<UseQueryResult, 'data' | 'error' | 'isPending' | 'refetch'>

/** Shows the state of a request that has no response, or that failed while earlier data is kept. */
export function QueryState({ query, what, again }: { query: Answer; what: string; again?: () => void }) {
  const { data, error, isPending, refetch } = query
  return (
    <>
      {error && <Failed error={error} isKept={data !== undefined} again={again ?? (() => void refetch())} />}
      {isPending && <Loading what={what} />}
    </>
  )
}

export function Nothing({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="nothing">
      <strong>{title}</strong>
      {children}
    </div>
  )
}

type SectionProps = { title: ReactNode; id?: string; className?: string | undefined; children: ReactNode }

/** Shows a section under its heading. A heading with an id names the section for screen readers. */
export function Section({ title, id, className, children }: SectionProps) {
  return (
    <section className={className} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}

const askAgainMs = 5_000

/** Shows how old the data is above a page whose server is away. No reload is needed. */
export function AwayBanner() {
  const away = useAway()
  const now = useNow()
  const isAway = away !== null
  useEffect(() => {
    // Runs once more after the server came back, to repeat requests that failed.
    const again = () =>
      void queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.error !== null })
    if (!isAway) return again()
    const timer = setInterval(again, askAgainMs)
    return () => clearInterval(timer)
  }, [isAway])
  if (!away) return null
  return (
    <div className="away said wrong" role="alert">
      <strong>{away.why}</strong> This page was last updated at {formatTimeOfDay(new Date(away.asOf).toISOString())},{' '}
      <span className="nowrap">{formatSpan(now - away.asOf)} ago</span>. The page retries by itself and keeps what you
      write.
    </div>
  )
}

type Props = {
  button: string
  /** The subject of the button, for screen readers. */
  label: string
  title: string
  /** The reason why the action is not allowed. Null for an allowed action. */
  refused?: string | null
  onOpen?(): void
  /** Carries out the action. If the action throws, the error is shown and the dialog stays. */
  run(): Promise<void>
  children: ReactNode
}

/**
 * Shows a button with its dialog. If the action is not allowed, the button is disabled and explains
 * why.
 */
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
  return (
    <dialog ref={dialog} aria-label={title}>
      <PageForm className="stack" onSubmit={onSubmit}>
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
      </PageForm>
    </dialog>
  )
}

/** Shows a form that code sends, and not the browser. */
export function PageForm({ onSubmit, ...rest }: Omit<ComponentProps<'form'>, 'onSubmit'> & { onSubmit(): void }) {
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSubmit()
  }
  return <form {...rest} onSubmit={submit} />
}
