import { useDeferredValue, useEffect, useMemo, useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { formatElapsed } from '../../domain/format.ts'
import { listReadings } from '../../domain/message.ts'
import { SelectField } from '../fields.tsx'
import { Inert } from '../markdown.tsx'
import { Sign } from '../marks.tsx'
import { Link, type Place, withSearch } from '../router.tsx'
import { Entry, getText } from './entry.tsx'
import { formatResult, getSign } from './rows.ts'

const views = ['full', 'compact', 'json'] as const
/** Rows that are there at once; the others follow between two frames, so that a long log can be used before it is whole. */
const firstRows = 100

const actors = [
  ['all', 'everybody'],
  ['agent', 'the agent'],
  ['user', 'people'],
  ['source', 'alert sources'],
  ['system', 'Nightshift'],
] as const
type Actor = (typeof actors)[number][0]

type Props = { events: IncidentEvent[]; place: Place; incidentId: string }

/** The log of an incident in three views: every row, one line per call, and the rows as they are stored. */
export function Timeline({ events, place, incidentId }: Props) {
  const view = views.find((each) => each === place.search.get('view')) ?? 'full'
  const [actor, setActor] = useState<Actor>('all')
  const ready = useDeferredValue(events, events.slice(0, firstRows))
  const target = useTarget(place.hash, ready.length)
  const shown = actor === 'all' ? ready : ready.filter((event) => event.actor.startsWith(`${actor}:`))
  const repeated = useMemo(() => findRepeated(ready), [ready])
  const readings = useMemo(() => listReadings(events), [events])
  const start = events[0] ? Date.parse(events[0].at) : 0
  return (
    <section className="stack" aria-labelledby="timeline-title">
      <div className="row between">
        <h2 id="timeline-title">
          Timeline <span className="soft">{events.length} rows</span>
        </h2>
        <div className="row">
          <SelectField className="row small" label="By" value={actor} options={actors} onChange={setActor} />
          <ViewSwitch place={place} view={view} />
          <Link href={`/incidents/${incidentId}/postmortem`}>Postmortem</Link>
        </div>
      </div>
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
      {view === 'compact' && <Compact events={shown} start={start} target={target} />}
      {view === 'json' && (
        <ol className="timeline raw">
          {shown.map((event) => (
            <Entry key={event.seq} event={event} start={start} isTarget={event.seq === target} raw />
          ))}
        </ol>
      )}
      {shown.length === 0 && <p className="nothing">No row of theirs. Choose everybody to see all.</p>}
    </section>
  )
}

/** The row that the address names, brought into sight as soon as it is drawn. */
function useTarget(hash: string, rows: number): number | null {
  const named = /^e-(\d+)$/.exec(hash)?.[1]
  const target = named ? Number(named) : null
  const isShown = target !== null && rows >= target
  useEffect(() => {
    if (isShown) document.getElementById(`e-${target}`)?.scrollIntoView({ block: 'center' })
  }, [isShown, target])
  return target
}

function ViewSwitch({ place, view }: { place: Place; view: (typeof views)[number] }) {
  return (
    <nav className="switch" aria-label="View of the timeline">
      {views.map((each) => (
        <Link
          key={each}
          href={withSearch(place, { view: each === 'full' ? null : each })}
          aria-current={each === view ? 'true' : undefined}
        >
          {each === 'json' ? 'JSON' : each}
        </Link>
      ))}
    </nav>
  )
}

/** Shorter texts are said again and again by right: they are sentences of code. */
const paragraphLength = 80

/** Rows whose text an earlier row has word for word, with the number of that row. */
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

/** One line per call: what was called, what came of it, who let it pass. Everything else keeps a separate line. */
function Compact({ events, start, target }: { events: IncidentEvent[]; start: number; target: number | null }) {
  return (
    <ol className="timeline compact">
      {groupByCall(events).map((line) => {
        const [first] = line
        const last = line.at(-1)
        if (!first || !last) return null
        const isTarget = line.some(({ seq }) => seq === target)
        return (
          <li key={first.seq} id={`e-${first.seq}`} className="entry" aria-current={isTarget ? 'true' : undefined}>
            <Link className="seq" href={`${location.pathname}#e-${first.seq}`}>
              {first.seq}
            </Link>
            <time dateTime={first.at}>{formatElapsed(Date.parse(first.at) - start)}</time>
            <span className="text row">
              {line.length > 1 && <code>{getTool(first)}</code>}
              {line.map((event) => {
                const { shape, tone, word } = getSign(event)
                return (
                  <span key={event.seq} className={`mark tone-${tone}`} title={event.detail}>
                    <Sign shape={shape} />
                    {word}
                  </span>
                )
              })}
              <span className="ellipsis">
                <Inert text={last.kind === 'tool_finished' ? formatResult(last.metadata.result) : last.detail} />
              </span>
            </span>
          </li>
        )
      })}
    </ol>
  )
}

/** Rows of one call in one attempt, in the order in which the calls began. */
function groupByCall(events: IncidentEvent[]): IncidentEvent[][] {
  const lines: IncidentEvent[][] = []
  const ofCall = new Map<string, IncidentEvent[]>()
  for (const event of events) {
    const callId = (event.metadata as { callId?: unknown }).callId
    const key = typeof callId === 'string' ? `${event.attempt}/${callId}` : null
    const line = key ? ofCall.get(key) : undefined
    if (line) line.push(event)
    else {
      const begun = [event]
      lines.push(begun)
      if (key) ofCall.set(key, begun)
    }
  }
  return lines
}

function getTool(event: IncidentEvent): string {
  const { tool } = event.metadata as { tool?: unknown }
  return typeof tool === 'string' ? tool : ''
}
