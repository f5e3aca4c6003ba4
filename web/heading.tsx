import { type ReactNode, useEffect, useRef } from 'react'
import { usePendingApprovals } from './approvals/pending.ts'

let first = true

/**
 * The heading of a page: names the tab, with how many approvals wait, and takes the focus when one comes from another page,
 * so that a screen reader begins here and no button is ever pressed by a key that was meant for the page before.
 */
export function Heading({ title, children }: { title: string; children?: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null)
  const { count } = usePendingApprovals()
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}${title} · Nightshift`
  }, [title, count])
  useEffect(() => {
    if (!first && !location.hash) heading.current?.focus()
    first = false
  }, [])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children ?? title}
    </h1>
  )
}
