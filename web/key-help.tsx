import { useRef, useState } from 'react'
import { keysAreOn, switchKeys, useKeys } from './keys.ts'
import { go } from './router.tsx'

const shortcuts: [string, string][] = [
  ['/', 'search'],
  ['j', 'next row'],
  ['k', 'previous row'],
  ['Enter', 'open the row'],
  ['a', 'go to the decision of an approval (presses nothing)'],
  ['d', 'go to its denial'],
  ['i', 'incidents'],
  ['p', 'approvals'],
  ['?', 'this help'],
]

export function KeyHelp() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [on, setOn] = useState(keysAreOn)
  useKeys({
    '?': () => dialog.current?.showModal(),
    i: () => go('/incidents'),
    p: () => go('/approvals'),
  })
  return (
    <>
      <button type="button" className="bare wide" onClick={() => dialog.current?.showModal()}>
        Keys
      </button>
      <dialog ref={dialog} aria-labelledby="keys-title">
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
    </>
  )
}
