import { useEffect, useRef, useState } from 'react'
import { navigate } from './router.tsx'

const key = 'nightshift.keys'
const typing = 'input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable]'

/** Whether a key that is pressed there is a letter of something. */
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
 * Single keys as shortcuts: never while somebody types, never with a modifier, which are the
 * browser's, and not for a person who switched them off. None changes the world; they move the
 * focus.
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
  ['Enter', 'preview an incident of the list; press again, or elsewhere, to open the row'],
  ['Esc', 'close the preview'],
  ['x', "choose an incident's row, or unchoose it"],
  ['a', "go to an approval's decision (it presses no button)"],
  ['d', 'go to the denial'],
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

/** The keys in a dialog, which `?` opens and `showKeys`; and those that lead to pages. */
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
        <label className="choice">
          <input
            type="checkbox"
            checked={on}
            onChange={(event) => {
              switchKeys(event.target.checked)
              setOn(event.target.checked)
            }}
          />
          Single keys are shortcuts
        </label>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
    </dialog>
  )
}

type CursorOptions<T> = {
  /** The row that the address is at. */
  at?: string | null
  onMove?(item: T): void
}

/**
 * The row that `j` and `k` move over and Enter opens, and the moves as buttons. It follows its
 * thing, not its place.
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
      // Enter on a link or a button is theirs.
      const on = (event.target as Element | null)?.closest?.('a, button, summary')
      if (on instanceof HTMLElement) return on.click()
      const found = items.find(({ id }) => id === current)
      if (found) open(found)
    },
  })
  return { current, move }
}

/** The same for a list whose rows lead to their pages. */
export function useCursorRow<T extends { id: string }>(items: readonly T[], open: (item: T) => void): string | null {
  return useCursor(items, open).current
}
