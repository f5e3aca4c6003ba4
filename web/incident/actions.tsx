import { type ReactNode, useState } from 'react'
import type { EscalationCategory, Incident, ResolveOutcome } from '../../domain/incident.ts'
import { categoryWords, outcomeWords } from '../../domain/status-words.ts'
import { ask } from '../api.ts'
import { Confirm } from '../confirm.tsx'
import { forgetDrafts, useDraft } from '../draft.ts'
import { isoOf, UntilField } from '../fields.tsx'
import { inertText } from '../inert.tsx'
import { queryClient } from '../query-client.ts'
import { useSession } from '../session.ts'
import type { PersonAction, Surroundings } from './query.ts'

/** What a person can do about an incident. What cannot be done now is shown with its reason, not hidden. */
export function Actions({ incident, surroundings }: { incident: Incident; surroundings: Surroundings | null }) {
  const { data: session } = useSession()
  const refused = (name: PersonAction) =>
    surroundings ? (surroundings.actions.find(({ action }) => action === name)?.refused ?? null) : 'Not known yet.'
  const isMine = incident.owner !== null && incident.owner.name === session?.name
  return (
    <div className="row">
      {!isMine && (
        <ActionDialog
          {...{ incident, refused: refused('take') }}
          button="Take"
          path="take"
          title={incident.owner ? 'Take it over' : 'Take this incident'}
        >
          <p>
            A run ends first, and a write under way is looked at. While you have it the agent makes no attempt and
            nobody is reminded; you hear what its alert does. Half a day without an act of yours gives it back.
          </p>
        </ActionDialog>
      )}
      {incident.owner && (
        <ActionDialog
          {...{ incident, refused: refused('give_back') }}
          button="Give back"
          path="give-back"
          title="Give this incident back"
        >
          <p>It stays escalated. What fires on is in the digest, and what begins again is investigated.</p>
        </ActionDialog>
      )}
      <Resolve incident={incident} refused={refused('resolve')} />
      <Escalate incident={incident} refused={refused('escalate')} />
      <Cancel incident={incident} refused={refused('cancel')} />
      <Expect incident={incident} hasAlert={(surroundings?.alerts.length ?? 0) > 0} refused={refused('expected')} />
      <ActionDialog
        {...{ incident, refused: refused('investigate') }}
        button={incident.status === 'open' ? 'Investigate now' : 'Investigate again'}
        path="investigate"
        title="Put it before the agent"
      >
        <p>An attempt begins at the next tick of the queue. You cannot approve its critical actions yourself.</p>
      </ActionDialog>
    </div>
  )
}

/** A button for something that is done to this incident, with the dialog that asks what it takes. */
export function ActionDialog({
  incident,
  button,
  path,
  title,
  refused,
  body,
  children,
}: {
  incident: Incident
  button: string
  path: string
  title: string
  refused: string | null
  body?(): unknown
  children: ReactNode
}) {
  const run = async () => {
    await ask(`/incidents/${incident.id}/${path}`, { method: 'POST', body: body?.() })
    forgetDrafts(incident.id)
    for (const key of ['incident', 'surroundings', 'events']) {
      void queryClient.invalidateQueries({ queryKey: [key, incident.id] })
    }
    void queryClient.invalidateQueries({ queryKey: ['expectations'] })
  }
  return (
    <Confirm button={button} label="this incident" title={title} refused={refused} run={run}>
      {children}
    </Confirm>
  )
}

/** What a person writes for others to read. */
export function Words({
  id,
  label,
  value,
  required = true,
  onChange,
}: {
  id: string
  label: string
  value: string
  required?: boolean
  onChange(value: string): void
}) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id}
        rows={3}
        required={required}
        minLength={3}
        maxLength={required ? 2000 : 1000}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </>
  )
}

/** One of a few, none of them chosen for the person. */
export function Choice<Word extends string>({
  name,
  legend,
  words,
  value,
  onChange,
}: {
  name: string
  legend: string
  words: readonly (readonly [Word, string])[]
  value: Word | null
  onChange(value: Word): void
}) {
  return (
    <fieldset className="stack tight">
      <legend>{legend}</legend>
      <div className="row">
        {words.map(([word, said]) => (
          <label className="choice" key={word}>
            <input
              type="radio"
              name={name}
              required
              value={word}
              checked={value === word}
              onChange={() => onChange(word)}
            />
            {said}
          </label>
        ))}
      </div>
    </fieldset>
  )
}

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
      {...{ incident, refused }}
      button="Mark as expected"
      path="expected"
      title="Mark it as expected"
      body={() => ({ subject, until: isoOf(until), reason: reason.trim() })}
    >
      <p className="soft">
        The incident ends now. When it fires again code looks at it: the same as now ends as expected and nobody is
        notified; anything else is investigated.
      </p>
      <Choice
        name="subject"
        legend="What is expected?"
        words={subjects}
        value={subject}
        onChange={(each) => setSubject(each)}
      />
      <UntilField id="expected-until" label="Until when?" required value={until} onChange={setUntil} />
      <Words id="expected-reason" label="Why is it expected?" value={reason} onChange={setReason} />
    </ActionDialog>
  )
}
