import { useRef, useState } from 'react'
import { inertText } from './inert.tsx'
import { spelled } from './own-command.ts'

/**
 * Shows a button that copies a text and confirms it. A page over plain http has no clipboard, so it
 * selects the text, and the person copies it. `of` is the id of the element with the text.
 */
export function CopyButton({ text, label, of }: { text: string; label: string; of: string }) {
  const [said, setSaid] = useState('')
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const copy = async () => {
    const outcome = await toClipboard(text, of)
    setSaid(outcome)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setSaid(''), 4_000)
  }
  return (
    <>
      <button type="button" className="copy" aria-label={`Copy ${label}`} onClick={() => void copy()}>
        Copy
      </button>
      <span role="status" className="small">
        {said}
      </span>
    </>
  )
}

async function toClipboard(text: string, of: string): Promise<string> {
  const shown = document.getElementById(of)
  const select = () => shown && getSelection()?.selectAllChildren(shown)
  if (!navigator.clipboard) {
    select()
    return 'The text is selected. Copy it with the keyboard.'
  }
  return await navigator.clipboard.writeText(text).then(
    () => 'Copied',
    () => {
      select()
      return 'The browser refused to copy. The text is selected: copy it with the keyboard.'
    },
  )
}

/** Shows an id in its usual form, with a button that copies it. */
export function CopyId({ id, label }: { id: string; label: string }) {
  return (
    <span className="copied">
      <span id={`id-${id}`} className="mono small soft wraps">
        {inertText(id)}
      </span>{' '}
      <CopyButton text={id} label={label} of={`id-${id}`} />
    </span>
  )
}

/** Shows the equivalent command. */
export function CopyCommand({ command: canonical, label }: { command: string; label: string }) {
  const command = spelled(canonical)
  const id = `command-${command.replaceAll(/[^a-z0-9_]+/gi, '-')}`
  return (
    <p className="command">
      <code id={id} className="wraps">
        {inertText(command)}
      </code>{' '}
      <CopyButton text={command} label={label} of={id} />
    </p>
  )
}
