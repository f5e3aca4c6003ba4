import { useState } from 'react'
import { useKeys } from '../keys.ts'

/** The row that `j` and `k` move over and Enter opens. It follows its thing, not its place. */
export function useCursorRow<T extends { id: string }>(items: T[], open: (item: T) => void): string | null {
  const [current, setCurrent] = useState<string | null>(null)
  const move = (by: number) => {
    const at = items.findIndex(({ id }) => id === current)
    const next = items[at < 0 ? 0 : Math.min(items.length - 1, Math.max(0, at + by))]
    if (!next) return
    setCurrent(next.id)
    document.getElementById(`row-${next.id}`)?.scrollIntoView({ block: 'nearest' })
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: (event) => {
      // Enter on a link or a button is theirs.
      const on = (event.target as Element | null)?.closest?.('a, button, summary')
      if (on instanceof HTMLElement) return on.click()
      const found = items.find(({ id }) => id === current)
      if (found) open(found)
    },
  })
  return current
}
