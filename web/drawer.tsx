import { X } from 'lucide-react'
import { type ReactNode, useEffect, useId, useLayoutEffect, useRef } from 'react'
import { Inert } from './inert.tsx'
import { isTyping } from './keys.tsx'

type DrawerProps = {
  /** It names the drawer, and may be a stranger's. */
  title: string
  /** Names what it shows: another one takes the focus again. */
  about?: string
  onClose(): void
  /** The element that has the focus afterwards; unless given, the one that had it before. */
  back?(): HTMLElement | null
  /** Beside the title: the ways to the one before and after, say. */
  tools?: ReactNode
  children: ReactNode
}

/**
 * A closer look at the right, beside its subject: the page goes on below it, so it is no modal
 * dialog. It takes the focus and gives it back; Escape closes it, once nothing over it takes that
 * key.
 */
export function Drawer({ title, about, onClose, back, tools, children }: DrawerProps) {
  const id = useId()
  const box = useRef<HTMLDialogElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  const newest = useRef({ onClose, back })
  useEffect(() => {
    newest.current = { onClose, back }
  })
  // This layout effect ends while the drawer is there: only a focus inside it is given back.
  useLayoutEffect(() => {
    const [own, before] = [box.current, document.activeElement]
    return () => {
      if (!own?.contains(document.activeElement)) return
      const to = newest.current.back?.() ?? before
      if (to instanceof HTMLElement) to.focus({ preventScroll: true })
    }
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is shown is another one
  useLayoutEffect(() => heading.current?.focus({ preventScroll: true }), [about])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.isComposing || isTyping(event.target)) return
      if (document.querySelector('dialog:modal, .dropdown[open], :popover-open')) return
      newest.current.onClose()
    }
    // Before a menu closes itself by the same press.
    addEventListener('keydown', onKey, true)
    return () => removeEventListener('keydown', onKey, true)
  }, [])
  return (
    <dialog open ref={box} className="drawer" aria-labelledby={id}>
      <header>
        <h2 id={id} ref={heading} tabIndex={-1} aria-live="polite">
          <Inert text={title} />
        </h2>
        {tools}
        <button type="button" className="bare" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <X aria-hidden="true" />
        </button>
      </header>
      {children}
    </dialog>
  )
}
