import { useMutation } from '@tanstack/react-query'
import type { FormEvent } from 'react'
import type { EscalationReport } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { foldHypotheses, type Hypothesis } from '../../domain/hypothesis.ts'
import { ask } from '../api.ts'
import { TextArea, useDraft } from '../fields.tsx'
import { Inert, inertText } from '../markdown.tsx'
import { Failed, Heading, Loading, QueryState } from '../page-frame.tsx'
import { Link, usePlace } from '../router.tsx'
import { Actions } from './endings.tsx'
import { Facts } from './facts.tsx'
import { Progress, Waiting } from './reading.tsx'
import { getRefusal, useIncident } from './rows.ts'
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
      <Causes events={events.data ?? []} />
      <Facts incident={incident.data} surroundings={surroundings.data ?? null} events={events.data ?? []} />
      {surroundings.error && <QueryState query={surroundings} what="what is around it" />}
      <QueryState query={events} what="the timeline" />
      {events.data && <Timeline events={events.data} place={place} incidentId={id} />}
      {(incident.data.status === 'investigating' || incident.data.status === 'awaiting_approval') && (
        <Note {...tellForm} incidentId={id} refused={getRefusal(surroundings.data ?? null, 'tell')} />
      )}
      <Note {...noteForm} incidentId={id} refused={getRefusal(surroundings.data ?? null, 'comment')} />
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

/** What the agent takes for the cause in its newest attempt: how each stands, and the rows that say so. */
function Causes({ events }: { events: IncidentEvent[] }) {
  const causes = foldHypotheses(events)
  if (causes.length === 0) return null
  const ending = events.findLast((event) => event.kind === 'resolved' || event.kind === 'escalated')
  const certainty = ending && 'certainty' in ending.metadata ? ending.metadata.certainty : null
  return (
    <section className="stack tight" aria-labelledby="causes-title">
      <h2 id="causes-title">What it may be {certainty && <span className="soft">{certainty}</span>}</h2>
      <Hypotheses causes={causes} incidentId={events[0]?.incidentId ?? ''} />
    </section>
  )
}

/** Each hypothesis with how it stands, and what rows say for and against it. */
export function Hypotheses({ causes, incidentId }: { causes: Hypothesis[]; incidentId: string }) {
  return (
    <ul className="claims">
      {causes.map(({ id, state, text, seq, by, supports, refutes }) => (
        <li key={id} className="wraps">
          <strong className={stateTones[state]}>{state}</strong> <Inert text={text} />{' '}
          {[...supports, ...refutes].map((quote) => (
            <Link
              key={`${quote.seq} ${quote.text}`}
              className="soft small"
              href={`/incidents/${incidentId}#e-${quote.seq}`}
              title={inertText(quote.text)}
            >
              #{quote.seq}{' '}
            </Link>
          ))}
          <span className="soft small">
            by <Inert text={by} />, <Link href={`/incidents/${incidentId}#e-${seq}`}>row {seq}</Link>
          </span>
        </li>
      ))}
    </ul>
  )
}

const stateTones = { proposed: 'soft', supported: 'tone-good', refuted: 'tone-warning' }

type Form = {
  name: string
  label: string
  hint: string
  button: string
  path: string
  toBody(text: string): object
}

const noteForm: Form = {
  name: 'note',
  label: 'Add a note',
  hint: 'It stays in the log; the agent reads it only when it is asked again.',
  button: 'Add the note',
  path: 'events',
  toBody: (detail) => ({ action: 'commented', detail }),
}

const tellForm: Form = {
  name: 'tell',
  label: 'Tell the agent',
  hint: 'Its next turn reads it. Your words are advice: they approve nothing.',
  button: 'Tell it',
  path: 'messages',
  toBody: (text) => ({ text }),
}

/** A person's own row in the log: for people, or for the agent while it investigates. */
function Note({
  name,
  label,
  hint,
  button,
  path,
  toBody,
  incidentId,
  refused,
}: Form & { incidentId: string; refused: string | null }) {
  const [text, setText] = useDraft(`${name} on ${incidentId}`)
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/incidents/${incidentId}/${path}`, { method: 'POST', body: toBody(text.trim()) }),
    onSuccess: () => setText(''),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <form className="note stack" onSubmit={submit}>
      <TextArea
        id={name}
        label={label}
        rows={2}
        required
        maxLength={2000}
        disabled={Boolean(refused)}
        placeholder={refused ?? hint}
        value={text}
        onChange={setText}
      />
      {error !== null && <Failed error={error} />}
      <div>
        <button type="submit" disabled={isPending || Boolean(refused)} title={refused ?? undefined}>
          {button}
        </button>
      </div>
    </form>
  )
}
