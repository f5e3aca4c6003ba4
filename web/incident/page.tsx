import { useMutation } from '@tanstack/react-query'
import type { ServedBrief } from '../../domain/brief.ts'
import type { EscalationReport } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { capitalize } from '../../domain/format.ts'
import { foldHypotheses, type Hypothesis, standingOf, standingWords } from '../../domain/hypothesis.ts'
import type { DetailedIncident, Surroundings } from '../../domain/incident-detail.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { questionType } from '../../domain/question.ts'
import { toSentence } from '../../domain/say.ts'
import { ask } from '../api.ts'
import { TextArea, useDraft } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { Failed, Heading, Loading, PageForm, QueryState, Section } from '../page-frame.tsx'
import { Link, type PageLocation, usePlace, withSearch } from '../router.tsx'
import { VerifyIncident } from '../verify.tsx'
import { Answer, Attempts, DecisionSentence, Glance, Similar, StillFires } from './brief.tsx'
import { Actions } from './endings.tsx'
import { Alerts, Details } from './facts.tsx'
import { Grades } from './grades.tsx'
import { AskedAt, QuestionActions, QuestionAnswer } from './question.tsx'
import { Rail } from './rail.tsx'
import { Progress } from './reading.tsx'
import { listQuotes, RowDrawer } from './row-drawer.tsx'
import { RowLink, RowLinks } from './row-link.tsx'
import { getRefusal, useIncident } from './rows.ts'
import { Strip } from './strip.tsx'
import { Earlier, Timeline } from './timeline.tsx'
import { Investigation } from './turns.tsx'
import { Undos } from './undo.tsx'

/** Lists the tools of writes that the agent proposed, each once. */
function listWrites(rows: readonly IncidentEvent[]): string[] {
  const writes = rows.flatMap((row) =>
    row.kind === 'call_judged' && row.metadata.effect === 'write' ? [row.metadata.tool] : [],
  )
  return [...new Set(writes)]
}

/** Shows an incident with its result first: request, reasons, actions; below them the details. */
export function IncidentPage({ id }: { id: string }) {
  const place = usePlace()
  const { incident, brief, surroundings, events, state } = useIncident(id)
  if (incident.isPending) return <Loading what="the incident" />
  if (!incident.data) {
    return (
      <>
        <Heading title="Incident" of={{ href: '/incidents', title: 'Incidents' }} />
        <QueryState query={incident} what="the incident" />
      </>
    )
  }
  const around = surroundings.data ?? null
  const isAtWork = incident.data.status === 'investigating' || incident.data.status === 'awaiting_approval'
  const isQuestion = incident.data.type === questionType
  const rows = events.data ?? []
  const given = { incident: incident.data, surroundings: around }
  return (
    <div className="read">
      <header className="lead">
        <Heading title={inertText(incident.data.title)} of={{ href: '/incidents', title: 'Incidents' }}>
          <Inert text={incident.data.title} />
        </Heading>
        {isQuestion ? <QuestionActions {...given} /> : <Actions {...given} tools={listWrites(rows)} />}
        {isQuestion ? (
          <AskedAt incident={incident.data} />
        ) : (
          <Glance incident={incident.data} brief={brief.data ?? null} />
        )}
      </header>
      <div className="column">
        <QueryState query={incident} what="the incident" />
        <Progress {...given} events={rows} />
        <QueryState query={brief} what="the brief" />
        {brief.data && <StillFires incident={incident.data} brief={brief.data} />}
        {brief.data?.asked && <DecisionSentence asked={brief.data.asked} alsoAsked={brief.data.alsoAsked} />}
        {brief.data && !isQuestion && (
          <Answer incident={incident.data} brief={brief.data} state={state} events={rows} />
        )}
        {brief.data && isQuestion && <QuestionAnswer incident={incident.data} brief={brief.data} />}
        <Grades incident={incident.data} />
        <Undos incident={incident.data} events={rows} />
        {brief.data && !isQuestion && events.data && (
          <Strip incident={incident.data} brief={brief.data} events={events.data} />
        )}
        {surroundings.error && <QueryState query={surroundings} what="the surroundings of this incident" />}
        <Parts
          incident={incident.data}
          brief={brief.data ?? null}
          surroundings={around}
          place={place}
          events={events}
        />
        {isAtWork && incident.data.type !== manualChangeType && (
          <Note {...tellForm} incidentId={id} refused={getRefusal(around, 'tell')} />
        )}
        <Note {...noteForm} incidentId={id} refused={getRefusal(around, 'comment')} />
        <VerifyIncident id={id} />
      </div>
      {brief.data && <Rail incident={incident.data} brief={brief.data} surroundings={around} events={rows} />}
      <RowDrawer
        incidentId={id}
        events={rows}
        quotes={listQuotes(rows)}
        last={incident.data.events}
        beganMs={Date.parse(incident.data.createdAt)}
      />
    </div>
  )
}

const parts = ['investigation', 'alerts', 'similar', 'attempts', 'details', 'log'] as const
type Part = (typeof parts)[number]
/** Parts of the page for a question, which has no alert, no postmortem and no similar incidents. */
const questionParts: readonly Part[] = ['investigation', 'details', 'log']

type PartsProps = {
  incident: DetailedIncident
  brief: ServedBrief | null
  surroundings: Surroundings | null
  place: PageLocation
  events: ReturnType<typeof useIncident>['events']
}

/** Shows one part at a time. An address that names a row, or a view of the log, opens the log. */
function Parts({ incident, brief, surroundings, place, events }: PartsProps) {
  const isQuestion = incident.type === questionType
  const isOfLog = /^e-\d+$/.test(place.hash) || place.search.has('view')
  const named = parts.find((each) => each === place.search.get('tab'))
  const open: Part = isOfLog ? 'log' : (named ?? 'investigation')
  const rows = events.data ?? []
  const counts: Partial<Record<Part, number>> = {
    alerts: surroundings?.alerts.length,
    similar: brief?.similar.length,
    attempts: brief?.attempts.length,
    log: incident.events,
  }
  return (
    <section className="stack" aria-label="More about this incident">
      <nav className="tabs" aria-label="Parts of this incident">
        {(isQuestion ? questionParts : parts).map((each) => (
          <Link
            key={each}
            href={withSearch(place, { tab: each === 'investigation' ? null : each, view: null })}
            aria-current={each === open ? 'true' : undefined}
          >
            {capitalize(each)} {counts[each] !== undefined && <span className="soft">{counts[each]}</span>}
          </Link>
        ))}
        {!isQuestion && <Link href={`/incidents/${incident.id}/postmortem`}>Postmortem</Link>}
      </nav>
      {brief && (open === 'investigation' || open === 'log') && <QueryState query={events} what="the log" />}
      {open === 'investigation' && (
        <>
          {incident.status === 'escalated' && !isQuestion && <Report events={rows} />}
          {!isQuestion && <Causes events={rows} shown={brief?.cause.text ?? null} />}
          <Earlier events={rows} incidentId={incident.id} />
          {events.data && <Investigation events={rows} />}
        </>
      )}
      {open === 'alerts' && surroundings && <Alerts alerts={surroundings.alerts} />}
      {open === 'similar' && brief && <Similar similar={brief.similar} />}
      {open === 'attempts' && brief && <Attempts attempts={brief.attempts} />}
      {open === 'details' && <Details incident={incident} surroundings={surroundings} events={rows} />}
      {open === 'log' && events.data && <Timeline events={rows} place={place} incidentId={incident.id} />}
    </section>
  )
}

/** Shows the facts of a hand-over besides the next step of the brief. Empty if no row has them. */
function Report({ events }: { events: IncidentEvent[] }) {
  const handed = events.findLast((event) => event.kind === 'escalated')
  if (handed?.kind !== 'escalated' || !handed.metadata.report) return null
  const { report } = handed.metadata
  return (
    <Section className="said stack tight report" id="report-title" title="Escalation report">
      <Lists report={report} />
      <p className="soft small">
        <Inert text={report.severity} />, <Inert text={report.resource} />, since <Inert text={report.since} /> ·{' '}
        <RowLink seq={handed.seq}>row {handed.seq}</RowLink>
      </p>
    </Section>
  )
}

function Lists({ report }: { report: EscalationReport }) {
  const lists: [string, string[], string][] = [
    ['Found', report.found, 'nothing yet'],
    ['Ruled out', report.ruledOut, 'nothing'],
    ...(report.checked?.length ? [['Checked', report.checked, ''] satisfies [string, string[], string]] : []),
    ['Changed', report.changed, 'nothing'],
    ...(report.denied?.length ? [['Denied', report.denied, ''] satisfies [string, string[], string]] : []),
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

/**
 * Lists the other hypotheses of the agent in its newest attempt, besides the cause in the brief:
 * the state of each, and its rows.
 */
function Causes({ events, shown }: { events: IncidentEvent[]; shown: string | null }) {
  const causes = foldHypotheses(events).filter(({ text }) => toSentence(text) !== shown)
  if (causes.length === 0) return null
  return (
    <Section className="stack tight" id="causes-title" title="Other hypotheses">
      <Hypotheses causes={causes} />
    </Section>
  )
}

/** Lists each hypothesis with its state, and its rows for and against. */
export function Hypotheses({ causes }: { causes: Hypothesis[] }) {
  return (
    <ul className="claims">
      {causes.map((cause) => {
        const { id, state, text, seq, by, supports, refutes } = cause
        const quotes = [...supports, ...refutes]
        return (
          <li key={id} className="wraps">
            <strong className={stateTones[state]}>{standingWords[standingOf(cause)]}</strong> <Inert text={text} />{' '}
            <RowLinks rows={quotes.map((quote) => quote.seq)} quotes={quotes} most={quotes.length} />{' '}
            <span className="soft small">
              by <Inert text={by} />, <RowLink seq={seq}>row {seq}</RowLink>
            </span>
          </li>
        )
      })}
    </ul>
  )
}

const stateTones = { proposed: 'soft', supported: 'tone-proved', refuted: 'tone-ink' }

type Writing = {
  name: string
  label: string
  hint: string
  button: string
  path: string
  toBody(text: string): object
}

const noteForm: Writing = {
  name: 'note',
  label: 'Add a note',
  hint: 'The note stays in the log. The agent reads it only in a new investigation.',
  button: 'Add the note',
  path: 'events',
  toBody: (detail) => ({ action: 'commented', detail }),
}

const tellForm: Writing = {
  name: 'tell',
  label: 'Tell the agent',
  hint: 'The agent reads your message in its next turn. It is advice and approves nothing.',
  button: 'Tell it',
  path: 'messages',
  toBody: (text) => ({ text }),
}

/**
 * Adds a row that a person writes to the log, for people, or for the agent while it investigates.
 */
function Note({
  name,
  label,
  hint,
  button,
  path,
  toBody,
  incidentId,
  refused,
}: Writing & { incidentId: string; refused: string | null }) {
  const [text, setText] = useDraft(`${name} on ${incidentId}`)
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => ask(`/incidents/${incidentId}/${path}`, { method: 'POST', body: toBody(text.trim()) }),
    onSuccess: () => setText(''),
  })
  return (
    <PageForm className="note stack" onSubmit={() => mutate()}>
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
    </PageForm>
  )
}
