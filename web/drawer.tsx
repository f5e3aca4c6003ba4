import { X } from 'lucide-react'
import { type ReactNode, useEffect, useId, useLayoutEffect, useRef } from 'react'
import { Inert } from './inert.tsx'
import { isTyping } from './keys.tsx'

type DrawerProps = {
  /** The title of the drawer, which may be untrusted. */
  title: string
  /** Identifies the content. If the content changes, the drawer takes the focus again. */
  about?: string
  onClose(): void
  /** Returns the element that gets the focus afterwards. Default: the one that had it before. */
  back?(): HTMLElement | null
  /** Content beside the title, such as links to the previous and next one. */
  tools?: ReactNode
  children: ReactNode
}

/**
 * Shows details at the right, beside their subject. The page stays usable, so the drawer is not a
 * modal dialog. The drawer takes the focus and returns it. Escape closes the drawer, unless
 * something above it handles this key.
 */
export function Drawer({ title, about, onClose, back, tools, children }: DrawerProps) {
  const id = useId()
  const box = useRef<HTMLDialogElement>(null)
  const heading = useRef<HTMLHeadingElement>(null)
  const newest = useRef({ onClose, back })
  useEffect(() => {
    newest.current = { onClose, back }
  })
  // Cleans up in a layout effect, which runs while the drawer still exists, so that only a focus
  // inside it is returned.
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
    // Listens in the capture phase, before a menu closes itself by the same press.
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
