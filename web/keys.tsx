import { useEffect, useRef, useState } from 'react'
import { CheckField } from './fields.tsx'
import { navigate } from './router.tsx'

const key = 'nightshift.keys'
const typing = 'input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]'

/** Whether a key that is pressed there types a letter. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(typing) !== null
}

function keysAreOn(): boolean {
  return localStorage.getItem(key) !== 'off'
}

function switchKeys(on: boolean): void {
  if (on) localStorage.removeItem(key)
  else localStorage.setItem(key, 'off')
}

/**
 * Handles single keys as shortcuts: never while a person types, never with a modifier, which
 * belongs to the browser, and not for a person who switched shortcuts off. Shortcuts move the
 * focus, and none changes the platform.
 */
export function useKeys(handlers: Record<string, (event: KeyboardEvent) => void>): void {
  const newest = useRef(handlers)
  useEffect(() => {
    newest.current = handlers
  })
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !keysAreOn()) return
      if (isTyping(event.target) || document.querySelector('dialog:modal')) return
      const handler = newest.current[event.key]
      if (!handler) return
      event.preventDefault()
      handler(event)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

const shortcuts: [string, string][] = [
  ['/', 'search'],
  ['j', 'next row'],
  ['k', 'previous row'],
  ['Enter', 'in the list of incidents: preview the row, and open it when pressed again; in other lists: open the row'],
  ['Esc', 'close the preview'],
  ['x', "select or deselect an incident's row"],
  ['a', 'go to the decision of an approval (presses no button)'],
  ['d', 'open the form that denies an approval'],
  ['h', 'home'],
  ['i', 'incidents'],
  ['p', 'approvals'],
  ['?', 'this help'],
]

const helpId = 'keys'

export function showKeys(): void {
  const dialog = document.getElementById(helpId)
  if (dialog instanceof HTMLDialogElement) dialog.showModal()
}

/**
 * Lists the keys in a dialog, which `?` and `showKeys` open, and handles the keys that lead to
 * pages.
 */
export function KeyHelp() {
  const [on, setOn] = useState(keysAreOn)
  useKeys({
    '?': showKeys,
    h: () => navigate('/home'),
    i: () => navigate('/incidents'),
    p: () => navigate('/approvals'),
  })
  return (
    <dialog id={helpId} aria-labelledby="keys-title">
      <div className="stack">
        <h2 id="keys-title">Keys</h2>
        <table>
          <tbody>
            {shortcuts.map(([name, what]) => (
              <tr key={name}>
                <th scope="row">
                  <kbd>{name}</kbd>
                </th>
                <td>{what}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <CheckField
          checked={on}
          onChange={(isOn) => {
            switchKeys(isOn)
            setOn(isOn)
          }}
        >
          Single keys are shortcuts
        </CheckField>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
    </dialog>
  )
}

type CursorOptions<T> = {
  /** The row that the address names. */
  at?: string | null
  onMove?(item: T): void
}

/**
 * Tracks the row that `j` and `k` move over and Enter opens, and returns the moves for buttons. The
 * cursor stays on its item if the item moves.
 */
export function useCursor<T extends { id: string }>(
  items: readonly T[],
  open: (item: T) => void,
  { at = null, onMove }: CursorOptions<T> = {},
) {
  const [current, setCurrent] = useState<string | null>(at)
  useEffect(() => {
    if (at !== null) setCurrent(at)
  }, [at])
  const move = (by: number) => {
    const from = items.findIndex(({ id }) => id === current)
    const next = items[from < 0 ? 0 : Math.min(items.length - 1, Math.max(0, from + by))]
    if (!next) return
    setCurrent(next.id)
    document.getElementById(`row-${next.id}`)?.scrollIntoView({ block: 'nearest' })
    onMove?.(next)
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: (event) => {
      // Leaves Enter to links and buttons.
      const on = (event.target as Element | null)?.closest?.('a, button, summary')
      if (on instanceof HTMLElement) return on.click()
      const found = items.find(({ id }) => id === current)
      if (found) open(found)
    },
  })
  return { current, move }
}

/** Tracks the row of a list whose rows lead to their pages. */
export function useCursorRow<T extends { id: string }>(items: readonly T[], open: (item: T) => void): string | null {
  return useCursor(items, open).current
}
