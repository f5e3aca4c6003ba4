import { useMutation } from '@tanstack/react-query'
import { memo, useDeferredValue, useEffect, useMemo, useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatElapsed } from '../../domain/format.ts'
import { gradeWords, isUnshown, notShown, rowsOf, type StoredClaim } from '../../domain/hypothesis.ts'
import { listReadings } from '../../domain/message.ts'
import { SelectField } from '../fields.tsx'
import { Exact, Inert } from '../inert.tsx'
import { Markdown } from '../markdown.tsx'
import { Sign } from '../marks.tsx'
import { Failed } from '../page-frame.tsx'
import { PlanOfProposal } from '../plan/plan.tsx'
import { Link, type PageLocation, withSearch } from '../router.tsx'
import { formatBothZones, formatTimeOfDay } from '../time.ts'
import { ReadingOf } from './reading.tsx'
import { RowLinks } from './row-link.tsx'
import { getSign, listHighlights, pageRows, readEarlier } from './rows.ts'

type EntryProps = {
  event: IncidentEvent
  start: number
  /** True if the address names this row. */
  isTarget?: boolean
  /** True if the row is open in the drawer, which shows its number. */
  isBeside?: boolean
  raw?: boolean
  sameAs?: number | null
  reading?: string
}

/** Characters above which a row is folded to one line. */
const foldedAt = 280

/** A row never changes, so of a thousand rows only a new one is drawn. */
export const Entry = memo(function Entry(props: EntryProps) {
  const { event, start, isTarget = false, isBeside = false, raw, sameAs = null, reading } = props
  const [open, setOpen] = useState(isTarget || isBeside)
  const { shape, tone, word } = getSign(event)
  const text = getText(event)
  const folded = text.length > foldedAt && !open ? `${text.slice(0, foldedAt)}…` : text
  const aside = [...listHighlights(event), ...(reading ? [reading] : [])]
  const proposalId = getProposalId(event)
  return (
    <li
      id={isBeside ? undefined : `e-${event.seq}`}
      className={`entry kind-${event.kind}`}
      aria-current={isTarget ? 'true' : undefined}
    >
      {!isBeside && (
        <a className="seq" href={`#e-${event.seq}`} title={`Link to row ${event.seq}`}>
          {event.seq}
        </a>
      )}
      <time dateTime={event.at} title={formatBothZones(event.at)}>
        {formatTimeOfDay(event.at)}
        <span className="soft"> {formatElapsed(Date.parse(event.at) - start)}</span>
      </time>
      <span className={`what tone-${tone}`}>
        <Sign shape={shape} />
        {word}
      </span>
      <div className="text">
        {raw ? (
          <Exact value={event} label={`Row ${event.seq} as stored`} />
        ) : (
          <>
            <div className="line">
              <TextOf event={event} text={folded} sameAs={open ? null : sameAs} />
              <p className="aside soft small">
                <Inert text={[event.actor.replace(/^(agent|system):.*/, '$1'), ...aside].join(' · ')} />
                {event.kind === 'approval_requested' && (
                  <>
                    {' · '}
                    <Link href={`/approvals/${event.metadata.approvalId}`}>the approval</Link>
                  </>
                )}
                {' · '}
                <button type="button" className="bare" aria-expanded={open} onClick={() => setOpen(!open)}>
                  {open ? 'less' : 'more'}
                  <span className="visually-hidden"> of row {event.seq}</span>
                </button>
              </p>
            </div>
            {event.kind === 'resolved' && <Claims event={event} />}
            {proposalId && <PlanOfProposal id={proposalId} />}
            <ReadingOf event={event} isOpen={isBeside} />
            {open && <Exact value={event.metadata} label={`Everything in row ${event.seq}`} />}
          </>
        )}
      </div>
    </li>
  )
})

function TextOf({ event, text, sameAs }: { event: IncidentEvent; text: string; sameAs: number | null }) {
  if (sameAs !== null)
    return (
      <p className="soft">
        The same text as <a href={`#e-${sameAs}`}>row {sameAs}</a>
      </p>
    )
  if (isWritten(event))
    return (
      <div className="stack tight">
        <Markdown text={text} />
      </div>
    )
  return <Inert as="p" className="wraps lines" text={text} />
}

/** Whether a model wrote the text of a row, which may contain Markdown. */
function isWritten({ kind, actor }: IncidentEvent): boolean {
  return ['model_answered', 'resolved', 'escalated', 'commented'].includes(kind) && actor.startsWith('agent:')
}

/** Returns the sentence of a row. For a turn of the model, returns the model's text. */
export function getText(event: IncidentEvent): string {
  if (event.kind === 'model_answered') return event.metadata.final?.text || event.metadata.content || event.detail
  if (event.kind === 'tool_finished' && event.metadata.said) return event.metadata.said
  if (event.kind === 'call_judged') return `${event.detail}${event.metadata.hint ? ` ${event.metadata.hint}` : ''}`
  return event.detail
}

/** Returns the id of a plan that this row made. The plan is drawn where it appears first. */
export function getProposalId(event: IncidentEvent): string | null {
  if (event.kind !== 'tool_finished' || event.metadata.outcome !== 'done') return null
  const data = event.metadata.result.data as { proposal_id?: unknown; steps?: unknown } | undefined
  const has = data && typeof data.proposal_id === 'string' && Array.isArray(data.steps) && data.steps.length > 0
  return has ? (data.proposal_id as string) : null
}

/**
 * Shows the claims of an ending with links to their rows, the readings of code beside them, and a
 * mark on claims that are not proved.
 */
export function Claims({ event }: { event: IncidentEvent<'resolved'> }) {
  const { claims } = event.metadata
  if (claims.length === 0) return null
  return (
    <ul className="claims">
      {claims.map((claim) => (
        <li key={claim.text}>
          <Inert text={claim.text} />{' '}
          <RowLinks rows={rowsOf(claim)} quotes={quotesOf(claim)} most={rowsOf(claim).length} />
          <Grade claim={claim} />
        </li>
      ))}
    </ul>
  )
}

export const quotesOf = (claim: StoredClaim) => ('quotes' in claim ? claim.quotes : [])

/**
 * Shows for a claim that rows prove the quoted words. For a claim in the agent's words it shows the
 * quoted values, and the newest health of its resources.
 */
function Grade({ claim }: { claim: StoredClaim }) {
  const why = 'why' in claim ? claim.why : undefined
  if (isUnshown(claim)) {
    return (
      <>
        {' '}
        <strong className="unknown" title={why}>
          {notShown}
        </strong>
      </>
    )
  }
  if (!('grade' in claim) || claim.grade === undefined) return null
  const lines = claim.grade === 'A' ? claim.quotes : (claim.beside ?? [])
  return (
    <span className="soft small" title={why}>
      {' '}
      {gradeWords[claim.grade]}:{' '}
      {lines.map(({ seq, text }) => (
        <span key={`${seq} ${text}`} className="quoted">
          «<Inert text={text} />»{' '}
        </span>
      ))}
    </span>
  )
}

const views = ['full', 'json'] as const
/**
 * Number of rows that are drawn at once. The other rows follow between two frames, so that a long
 * log can be used early.
 */
const firstRows = 100

const actors = [
  ['all', 'everybody'],
  ['agent', 'the agent'],
  ['user', 'people'],
  ['source', 'alert sources'],
  ['system', 'Nightshift'],
] as const
type Actor = (typeof actors)[number][0]

type Props = { events: IncidentEvent[]; place: PageLocation; incidentId: string }

/**
 * Shows the log of an incident in two views: rows as sentences, and as stored. Earlier rows are
 * loaded by a press, or if the address names one.
 */
export function Timeline({ events, place, incidentId }: Props) {
  const view = views.find((each) => each === place.search.get('view')) ?? 'full'
  const [actor, setActor] = useState<Actor>('all')
  const ready = useDeferredValue(events, events.slice(0, firstRows))
  const target = useTarget(place.hash, ready, incidentId)
  const shown = actor === 'all' ? ready : ready.filter((event) => event.actor.startsWith(`${actor}:`))
  const repeated = useMemo(() => findRepeated(ready), [ready])
  const readings = useMemo(() => listReadings(events), [events])
  const start = events[0] ? Date.parse(events[0].at) : 0
  return (
    <section className="stack" aria-labelledby="timeline-title">
      <div className="row between">
        <h2 id="timeline-title">
          Log <span className="soft">{events.at(-1)?.seq ?? 0} rows</span>
        </h2>
        <div className="row">
          <SelectField className="row small" label="By" value={actor} options={actors} onChange={setActor} />
          <ViewSwitch place={place} view={view} />
        </div>
      </div>
      <Earlier events={events} incidentId={incidentId} />
      {view === 'full' && (
        <div role="log" aria-label="Rows, oldest first">
          <ol className="timeline">
            {shown.map((event) => (
              <Entry
                key={event.seq}
                event={event}
                start={start}
                isTarget={event.seq === target}
                sameAs={repeated.get(event.seq) ?? null}
                reading={readings.get(event.seq)}
              />
            ))}
          </ol>
        </div>
      )}
      {view === 'json' && (
        <ol className="timeline raw">
          {shown.map((event) => (
            <Entry key={event.seq} event={event} start={start} isTarget={event.seq === target} raw />
          ))}
        </ol>
      )}
      {shown.length === 0 && <p className="nothing">No row matches. Choose “everybody” to see all rows.</p>}
    </section>
  )
}

/** Shows a button that loads rows before the first loaded one. */
export function Earlier({ events, incidentId }: Pick<Props, 'events' | 'incidentId'>) {
  const first = events[0]?.seq ?? 1
  const { mutate, isPending, error } = useMutation({ mutationFn: () => readEarlier(incidentId, first - pageRows) })
  if (first === 1) return null
  return (
    <div className="stack">
      <p className="row">
        <button type="button" disabled={isPending} onClick={() => mutate()}>
          Show {Math.min(pageRows, first - 1)} earlier rows
        </button>
        <span className="soft">{first - 1} are not shown.</span>
      </p>
      {error !== null && <Failed error={error} />}
    </div>
  )
}

/** Scrolls to the row in the address as soon as it is drawn. */
function useTarget(hash: string, ready: readonly IncidentEvent[], incidentId: string): number | null {
  const named = /^e-(\d+)$/.exec(hash)?.[1]
  const target = named ? Number(named) : null
  const first = ready[0]?.seq ?? 1
  const isShown = target !== null && target >= first && (ready.at(-1)?.seq ?? 0) >= target
  useEffect(() => {
    if (target !== null && target > 0 && target < first) void readEarlier(incidentId, target).catch(() => undefined)
  }, [target, first, incidentId])
  useEffect(() => {
    if (isShown) document.getElementById(`e-${target}`)?.scrollIntoView({ block: 'center' })
  }, [isShown, target])
  return target
}

function ViewSwitch({ place, view }: { place: PageLocation; view: (typeof views)[number] }) {
  return (
    <nav className="switch" aria-label="View of the timeline">
      {views.map((each) => (
        <Link
          key={each}
          href={withSearch(place, { tab: 'log', view: each === 'full' ? null : each })}
          aria-current={each === view ? 'true' : undefined}
        >
          {each === 'json' ? 'JSON' : each}
        </Link>
      ))}
    </nav>
  )
}

/** Characters below which texts may repeat, because they are sentences of code. */
const paragraphLength = 80

/** Finds rows whose text is identical to that of an earlier row, with the number of that row. */
function findRepeated(events: readonly IncidentEvent[]): Map<number, number> {
  const first = new Map<string, number>()
  const repeated = new Map<number, number>()
  for (const event of events) {
    const text = getText(event).trim()
    if (text.length < paragraphLength) continue
    const earlier = first.get(text)
    if (earlier === undefined) first.set(text, event.seq)
    else repeated.set(event.seq, earlier)
  }
  return repeated
}
