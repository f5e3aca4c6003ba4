import { type ReactNode, useEffect, useRef } from 'react'
import { usePendingApprovals } from './approvals/query.ts'

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

export function Brand() {
  return (
    <a className="brand" href="/incidents">
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#171b2a" stroke="#66708a" strokeWidth="1" />
        <path d="M21.5 20.8A9 9 0 0 1 12.2 7.4a9.6 9.6 0 1 0 11.9 12.2 9 9 0 0 1-2.6 1.2z" fill="#f2b95c" />
      </svg>
      Nightshift
    </a>
  )
}
