import { type ReactNode, useEffect, useRef } from 'react'

/** Shows the children above the page after a press. Escape or a press elsewhere closes it. */
export function Dropdown(props: { className: string; summary: ReactNode; children: ReactNode }) {
  const { className, summary, children } = props
  const box = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      // Does nothing if a dialog was opened from here, which handles Escape itself.
      if (!box.current?.open || box.current.querySelector('dialog[open]')) return
      const isEscape = event instanceof KeyboardEvent && event.key === 'Escape'
      const isElsewhere = event.type === 'pointerdown' && !box.current.contains(event.target as Node)
      if (!isEscape && !isElsewhere) return
      box.current.open = false
      if (isEscape) box.current.querySelector('summary')?.focus()
    }
    for (const type of ['pointerdown', 'keydown']) addEventListener(type, close)
    return () => {
      for (const type of ['pointerdown', 'keydown']) removeEventListener(type, close)
    }
  }, [])
  return (
    <details ref={box} className={`dropdown ${className}`}>
      <summary>{summary}</summary>
      <div>{children}</div>
    </details>
  )
}
