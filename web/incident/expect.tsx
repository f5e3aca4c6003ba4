import { useState } from 'react'
import type { Incident } from '../../domain/incident.ts'
import { useDraft } from '../draft.ts'
import { inertText } from '../inert.tsx'
import { isoOf, UntilField } from '../until-field.tsx'
import { ActionDialog, Choice, Words } from './action-dialog.tsx'

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
