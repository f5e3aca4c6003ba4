import { useEffect, useRef, useState } from 'react'

/** The plain token, this once. */
export function Minted({ name, token, onDone }: { name: string; token: string; onDone(): void }) {
  const box = useRef<HTMLElement>(null)
  const [said, setSaid] = useState('')
  useEffect(() => box.current?.focus(), [])
  const copy = async () => {
    // A page over plain http has no clipboard: the text is selected instead.
    if (!navigator.clipboard) {
      getSelection()?.selectAllChildren(document.getElementById('minted-token') as HTMLElement)
      setSaid('Selected: copy it with your keys.')
      return
    }
    await navigator.clipboard.writeText(token).then(
      () => setSaid('Copied.'),
      () => setSaid('The browser did not let it be copied: select it.'),
    )
  }
  return (
    <section className="said good stack tight" aria-label="The new token" tabIndex={-1} ref={box}>
      <p>
        <strong>{name}</strong> is minted. This is the only time it is shown.
      </p>
      <code id="minted-token" className="wraps">
        {token}
      </code>
      <div className="row">
        <button type="button" onClick={() => void copy()}>
          Copy
        </button>
        <button type="button" onClick={onDone}>
          I have it: put it away
        </button>
        <span role="status">{said}</span>
      </div>
    </section>
  )
}
