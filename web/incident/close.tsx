import { useState } from 'react'
import type { EscalationCategory, Incident, ResolveOutcome } from '../../domain/incident.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'
import { useDraft } from '../draft.ts'
import { isoOf, UntilField } from '../until-field.tsx'
import { ActionDialog, Choice, Words } from './action-dialog.tsx'

type Props = { incident: Incident; refused: string | null }

const outcomes: Exclude<ResolveOutcome, 'expected'>[] = ['repaired', 'self_resolved', 'no_fault']

/** A person says what it was: nothing is chosen for them. */
export function Resolve({ incident, refused }: Props) {
  const [outcome, setOutcome] = useState<ResolveOutcome | null>(null)
  const [text, setText] = useDraft(`resolution of ${incident.id}`)
  const words = (incident.type === 'question' ? (['answered', ...outcomes] as const) : outcomes).map(
    (each) => [each, outcomeWords[each]] as const,
  )
  return (
    <ActionDialog
      {...{ incident, refused }}
      button="Resolve"
      path="resolve"
      title="Close this incident as resolved"
      body={() => ({ outcome, resolution: text.trim() })}
    >
      <Choice
        name="outcome"
        legend="What was it?"
        words={words}
        value={outcome}
        onChange={(each) => setOutcome(each)}
      />
      <Words id="action-resolve" label="What was wrong, and what was done?" value={text} onChange={setText} />
      {incident.alerts.firing > 0 && (
        <p className="soft">Its alert still fires. You are reminded once, then it is in the digest until it ends.</p>
      )}
    </ActionDialog>
  )
}

export function Escalate({ incident, refused }: Props) {
  const [text, setText] = useDraft(`escalation of ${incident.id}`)
  const [next, setNext] = useDraft(`next step of ${incident.id}`)
  const [category, setCategory] = useState<EscalationCategory | ''>('')
  const body = () => ({
    reason: text.trim(),
    ...(category && { category }),
    ...(next.trim() && { next_step: next.trim() }),
  })
  return (
    <ActionDialog {...{ incident, refused, body }} button="Escalate" path="escalate" title="Hand it to people">
      <Words id="action-escalate" label="Why can the agent not go on?" value={text} onChange={setText} />
      <Words
        id="action-escalate-next"
        label="What should be done first? (if you know)"
        required={false}
        value={next}
        onChange={setNext}
      />
      <label className="row">
        Kind
        <select value={category} onChange={(event) => setCategory(event.target.value as EscalationCategory | '')}>
          <option value="">not said</option>
          {(Object.keys(categoryWords) as EscalationCategory[]).map((each) => (
            <option key={each} value={each}>
              {categoryWords[each]}
            </option>
          ))}
        </select>
      </label>
      {category === 'mitigated' && <p className="soft">The impact is gone and the cause is left: nobody is woken.</p>}
    </ActionDialog>
  )
}

export function Cancel({ incident, refused }: Props) {
  const [text, setText] = useDraft(`cancellation of ${incident.id}`)
  const [until, setUntil] = useState('')
  const iso = isoOf(until)
  return (
    <ActionDialog
      {...{ incident, refused }}
      button="Cancel"
      path="cancel"
      title="Stop the investigation"
      body={() => ({ reason: text.trim(), ...(iso && { until: iso }) })}
    >
      <Words id="action-cancel" label="Why is nothing to be done?" value={text} onChange={setText} />
      <UntilField
        id="action-cancel-until"
        label="Until when? A day, if you leave it empty. What fires then is investigated."
        required={false}
        value={until}
        onChange={setUntil}
      />
    </ActionDialog>
  )
}
