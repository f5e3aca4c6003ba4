import { useMutation } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import type { EscalationReport } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { ask } from '../api.ts'
import { TextArea, useDraft } from '../fields.tsx'
import { Inert, inertText } from '../markdown.tsx'
import { Failed, Heading, Loading, QueryState } from '../page-frame.tsx'
import { Link, usePlace } from '../router.tsx'
import { Actions } from './endings.tsx'
import { Facts } from './facts.tsx'
import { Progress, Waiting } from './reading.tsx'
import { useIncident } from './rows.ts'
import { Timeline } from './timeline.tsx'

export function IncidentPage({ id }: { id: string }) {
  const place = usePlace()
  const { incident, surroundings, events } = useIncident(id)
  if (incident.isPending) return <Loading what="the incident" />
  if (!incident.data) {
    return (
      <>
        <Heading title="Incident" />
        <Failed error={incident.error} isKept={incident.data !== undefined} again={() => void incident.refetch()} />
      </>
    )
  }
  return (
    <div className="stack">
      <header className="incident-head">
        <Heading title={inertText(incident.data.title)}>
          <Inert text={incident.data.title} />
        </Heading>
        <Actions incident={incident.data} surroundings={surroundings.data ?? null} />
      </header>
      <QueryState query={incident} what="the incident" />
      <Progress incident={incident.data} surroundings={surroundings.data ?? null} events={events.data ?? []} />
      {incident.data.status === 'awaiting_approval' && <Waiting incidentId={id} />}
      {incident.data.status === 'escalated' && <Report events={events.data ?? []} />}
      <Facts incident={incident.data} surroundings={surroundings.data ?? null} events={events.data ?? []} />
      {surroundings.error && <QueryState query={surroundings} what="what is around it" />}
      <QueryState query={events} what="the timeline" />
      {events.data && <Timeline events={events.data} place={place} incidentId={id} />}
      <Note incidentId={id} refused={surroundings.data?.actions.find(({ action }) => action === 'comment')?.refused} />
    </div>
  )
}

/** What the person reads first who is handed this incident: what to do, then what was found. Nothing where no row has it. */
function Report({ events }: { events: IncidentEvent[] }) {
  const handed = events.findLast((event) => event.kind === 'escalated')
  if (handed?.kind !== 'escalated' || !handed.metadata.report) return null
  const { report } = handed.metadata
  return (
    <section className="said stack tight report" aria-labelledby="report-title">
      <h2 id="report-title">Handed to people</h2>
      <p>
        <strong>
          Next step: <Inert text={report.nextStep} />
        </strong>
      </p>
      <Lists report={report} />
      <p className="soft small">
        <Inert text={report.severity} />, <Inert text={report.resource} />, since <Inert text={report.since} /> ·{' '}
        <Link href={`${location.pathname}#e-${handed.seq}`}>row {handed.seq}</Link>
      </p>
    </section>
  )
}

function Lists({ report }: { report: EscalationReport }) {
  const lists: [string, string[], string][] = [
    ['Found', report.found, 'nothing yet'],
    ['Ruled out', report.ruledOut, 'nothing'],
    ['Changed', report.changed, 'nothing'],
  ]
  return (
    <dl>
      {lists.map(([title, items, none]) => (
        <div key={title}>
          <dt>{title}</dt>
          {items.length === 0 && <dd className="soft">{none}</dd>}
          {items.map((item) => (
            <dd key={item} className="wraps lines">
              <Inert text={item} />
            </dd>
          ))}
        </div>
      ))}
    </dl>
  )
}

/** A person's own row in the log. */
function Note({ incidentId, refused }: { incidentId: string; refused: string | null | undefined }) {
  const [text, setText] = useDraft(`note on ${incidentId}`)
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => {
      const body = { action: 'commented', detail: text.trim() }
      return ask(`/incidents/${incidentId}/events`, { method: 'POST', body })
    },
    onSuccess: () => setText(''),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <form className="note stack" onSubmit={submit}>
      <TextArea
        id="note"
        label="Add a note"
        rows={2}
        required
        maxLength={2000}
        disabled={Boolean(refused)}
        placeholder={refused ?? 'It stays in the log; the agent reads it only when it is asked again.'}
        value={text}
        onChange={setText}
      />
      {error !== null && <Failed error={error} />}
      <div>
        <button type="submit" disabled={isPending || Boolean(refused)} title={refused ?? undefined}>
          Add the note
        </button>
      </div>
    </form>
  )
}
