import { useState } from 'react'
import type { EscalationCategory, Incident, ResolveOutcome } from '../../domain/incident.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'
import { useDraft } from '../draft.ts'
import { Choice, SelectField, toIsoTime, UntilField } from '../fields.tsx'
import { inertText } from '../inert.tsx'
import { ActionDialog, PersonText, type Props } from './action-dialog.tsx'

const outcomes: Exclude<ResolveOutcome, 'expected'>[] = ['repaired', 'self_resolved', 'no_fault']

/** A person says what it was: nothing is chosen for them. */
export function Resolve({ incident, refused }: Props) {
  const [outcome, setOutcome] = useState<ResolveOutcome | null>(null)
  const [text, setText] = useDraft(`resolution of ${incident.id}`)
  const options = (incident.type === 'question' ? (['answered', ...outcomes] as const) : outcomes).map(
    (each) => [each, outcomeWords[each]] as const,
  )
  return (
    <ActionDialog
      incident={incident}
      refused={refused}
      button="Resolve"
      path="resolve"
      title="Close this incident as resolved"
      body={() => ({ outcome, resolution: text.trim() })}
    >
      <Choice name="outcome" legend="What was it?" options={options} value={outcome} onChange={setOutcome} />
      <PersonText id="action-resolve" label="What was wrong, and what was done?" value={text} onChange={setText} />
      {incident.alerts.firing > 0 && (
        <p className="soft">Its alert still fires. You are reminded once, then it is in the digest until it ends.</p>
      )}
    </ActionDialog>
  )
}

const categoryOptions = [['', 'not said'], ...Object.entries(categoryWords)] as [EscalationCategory | '', string][]

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
    <ActionDialog
      incident={incident}
      refused={refused}
      body={body}
      button="Escalate"
      path="escalate"
      title="Hand it to people"
    >
      <PersonText id="action-escalate" label="Why can the agent not go on?" value={text} onChange={setText} />
      <PersonText
        id="action-escalate-next"
        label="What should be done first? (if you know)"
        required={false}
        value={next}
        onChange={setNext}
      />
      <SelectField label="Kind" value={category} options={categoryOptions} onChange={setCategory} />
      {category === 'mitigated' && <p className="soft">The impact is gone and the cause is left: nobody is woken.</p>}
    </ActionDialog>
  )
}

export function Cancel({ incident, refused }: Props) {
  const [text, setText] = useDraft(`cancellation of ${incident.id}`)
  const [until, setUntil] = useState('')
  const iso = toIsoTime(until)
  return (
    <ActionDialog
      incident={incident}
      refused={refused}
      button="Cancel"
      path="cancel"
      title="Stop the investigation"
      body={() => ({ reason: text.trim(), ...(iso && { until: iso }) })}
    >
      <PersonText id="action-cancel" label="Why is nothing to be done?" value={text} onChange={setText} />
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

type Subject = 'alert' | 'resource' | 'type'

/** Marks what fires as expected until a date: code compares what it sees then with what is true now, and nobody is notified while it is the same. */
export function Expect({
  incident,
  hasAlert,
  refused,
}: {
  incident: Incident
  hasAlert: boolean
  refused: string | null
}) {
  const subjects: (readonly [Subject, string])[] = [
    ...(hasAlert ? ([['alert', 'this alert']] as const) : []),
    ...(incident.resource
      ? ([['resource', `all that fires on ${incident.resource.kind} ${inertText(incident.resource.id)}`]] as const)
      : []),
    ['type', `all incidents of type ${incident.type}`],
  ]
  const [chosen, setSubject] = useState<Subject | null>(null)
  const [until, setUntil] = useState('')
  const [reason, setReason] = useDraft(`expectation of ${incident.id}`)
  const subject = chosen ?? subjects[0]?.[0] ?? 'type'
  return (
    <ActionDialog
      incident={incident}
      refused={refused}
      button="Mark as expected"
      path="expected"
      title="Mark it as expected"
      body={() => ({ subject, until: toIsoTime(until), reason: reason.trim() })}
    >
      <p className="soft">
        The incident ends now. When it fires again code looks at it: the same as now ends as expected and nobody is
        notified; anything else is investigated.
      </p>
      <Choice name="subject" legend="What is expected?" options={subjects} value={subject} onChange={setSubject} />
      <UntilField id="expected-until" label="Until when?" required value={until} onChange={setUntil} />
      <PersonText id="expected-reason" label="Why is it expected?" value={reason} onChange={setReason} />
    </ActionDialog>
  )
}
