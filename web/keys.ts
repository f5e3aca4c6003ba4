import { useEffect, useRef } from 'react'

const key = 'nightshift.keys'
const typing = 'input, textarea, select, [contenteditable]'

export function keysAreOn(): boolean {
  return localStorage.getItem(key) !== 'off'
}

export function switchKeys(on: boolean): void {
  if (on) localStorage.removeItem(key)
  else localStorage.setItem(key, 'off')
}

/**
 * Single keys as shortcuts: never while somebody types, never with a modifier, which belong to the browser, and not at all for
 * who switched them off. None of them presses anything that changes the world; they move the focus.
 */
export function useKeys(handlers: Record<string, (event: KeyboardEvent) => void>): void {
  const newest = useRef(handlers)
  useEffect(() => {
    newest.current = handlers
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !keysAreOn()) return
      const target = event.target as Element | null
      if (target?.closest?.(typing) || document.querySelector('dialog[open]')) return
      const handler = newest.current[event.key]
      if (!handler) return
      event.preventDefault()
      handler(event)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}
