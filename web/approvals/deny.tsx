import { type FormEvent, useState } from 'react'

const reasons = ['wrong target', 'too risky', 'wrong time', 'need evidence', 'other'] as const

/** A denial says why: the agent reads it, and the same action is not asked again in the group. */
export function Deny({ disabled, onDeny }: { disabled: boolean; onDeny(reason: string): void }) {
  const [kind, setKind] = useState<(typeof reasons)[number] | null>(null)
  const [text, setText] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!kind) return
    const more = text.trim()
    onDeny(kind === 'other' ? more : more ? `${kind}: ${more}` : kind)
  }
  return (
    <form className="stack" onSubmit={submit}>
      <fieldset className="stack tight" disabled={disabled}>
        <legend>Why not? The agent reads it and does not ask for this again.</legend>
        <div className="row">
          {reasons.map((reason) => (
            <label className="choice" key={reason}>
              <input
                type="radio"
                name="denial"
                required
                value={reason}
                checked={kind === reason}
                onChange={() => setKind(reason)}
              />
              {reason}
            </label>
          ))}
        </div>
        <label htmlFor="denial-text">In your words{kind === 'other' ? '' : ', if you like'}</label>
        <textarea
          id="denial-text"
          rows={2}
          maxLength={1900}
          required={kind === 'other'}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <div>
          <button type="submit">Deny</button>
        </div>
      </fieldset>
    </form>
  )
}
