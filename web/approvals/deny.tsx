import { type FormEvent, useState } from 'react'
import type { DenialCategory } from '../../domain/approval.ts'
import { useDraft } from '../draft.ts'
import { Radios, TextArea } from '../fields.tsx'

const categories: Record<DenialCategory, string> = {
  wrong_target: 'wrong target',
  too_risky: 'too risky',
  wrong_time: 'wrong time',
  need_evidence: 'need evidence',
  other: 'other',
}

const options = Object.entries(categories) as [DenialCategory, string][]

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
        <Radios name="denial" options={options} value={kind} onChange={setKind} />
        <TextArea
          id="denial-text"
          label={`In your words${kind === 'other' ? '' : ', if you like'}`}
          rows={2}
          maxLength={1900}
          required={kind === 'other'}
          value={text}
          onChange={setText}
        />
        <div>
          <button type="submit">Deny</button>
        </div>
      </fieldset>
    </form>
  )
}
