import { type FormEvent, useState } from 'react'
import type { DenialCategory } from '../../domain/approval.ts'
import { useDraft } from '../draft.ts'

const categories: Record<DenialCategory, string> = {
  wrong_target: 'wrong target',
  too_risky: 'too risky',
  wrong_time: 'wrong time',
  need_evidence: 'need evidence',
  other: 'other',
}

export type Denial = { category: DenialCategory; reason: string }

/** A denial says why: the agent reads it, and the same action is not asked again in the group. */
export function Deny({ id, disabled, onDeny }: { id: string; disabled: boolean; onDeny(denial: Denial): void }) {
  const [kind, setKind] = useState<DenialCategory | null>(null)
  const [text, setText] = useDraft(`denial of ${id}`)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!kind) return
    onDeny({ category: kind, reason: text.trim() || categories[kind] })
  }
  return (
    <form className="stack" onSubmit={submit}>
      <fieldset className="stack tight" disabled={disabled}>
        <legend>Why not? The agent reads it and does not ask for this again.</legend>
        <div className="row">
          {(Object.keys(categories) as DenialCategory[]).map((category) => (
            <label className="choice" key={category}>
              <input
                type="radio"
                name="denial"
                required
                value={category}
                checked={kind === category}
                onChange={() => setKind(category)}
              />
              {categories[category]}
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
