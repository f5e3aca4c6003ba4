import { useDeferredValue, useEffect, useMemo, useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { Inert } from '../inert.tsx'
import { Sign } from '../marks.tsx'
import { Link, type Place, withSearch } from '../router.tsx'
import { offset } from '../time.ts'
import { Entry, textOf } from './entry.tsx'
import { found, signOf } from './rows.ts'

const views = ['full', 'compact', 'json'] as const
/** Rows that are there at once; the others follow between two frames, so that a long log can be used before it is whole. */
const firstRows = 100

/** The log of an incident in three views: every row, one line per call, and the rows as they are stored. */
export function Timeline({ events, place, incidentId }: { events: IncidentEvent[]; place: Place; incidentId: string }) {
  const view = views.find((each) => each === place.search.get('view')) ?? 'full'
  const [who, setWho] = useState('all')
  const named = /^e-(\d+)$/.exec(place.hash)?.[1]
  const target = named ? Number(named) : null
  const ready = useDeferredValue(events, events.slice(0, firstRows))
  const isShown = target !== null && ready.length >= target
  const shown = who === 'all' ? ready : ready.filter(({ actor }) => actor.startsWith(`${who}:`))
  const repeated = useMemo(() => repeatedIn(ready), [ready])
  const start = events[0] ? Date.parse(events[0].at) : 0

  useEffect(() => {
    if (isShown) document.getElementById(`e-${target}`)?.scrollIntoView({ block: 'center' })
  }, [isShown, target])

  return (
    <section className="stack" aria-labelledby="timeline-title">
      <div className="row between">
        <h2 id="timeline-title">
          Timeline <span className="soft">{events.length} rows</span>
        </h2>
        <div className="row">
          <label className="row small">
            By
            <select value={who} onChange={(event) => setWho(event.target.value)}>
              <option value="all">everybody</option>
              <option value="agent">the agent</option>
              <option value="user">people</option>
              <option value="source">alert sources</option>
              <option value="system">Nightshift</option>
            </select>
          </label>
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
          <a href={`/api/v1/incidents/${incidentId}/export?format=md`} download>
            Postmortem
          </a>
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

/** Shorter texts are said again and again by right: they are sentences of code. */
const paragraphLength = 80

/** Rows whose text an earlier row has word for word, with the number of that row. */
function repeatedIn(events: readonly IncidentEvent[]): Map<number, number> {
  const first = new Map<string, number>()
  const repeated = new Map<number, number>()
  for (const event of events) {
    const text = textOf(event).trim()
    if (text.length < paragraphLength) continue
    const earlier = first.get(text)
    if (earlier === undefined) first.set(text, event.seq)
    else repeated.set(event.seq, earlier)
  }
  return repeated
}

/** One line per call: what was called, what came of it, who let it pass. Everything else keeps a separate line. */
export function Compact({ events, start, target }: { events: IncidentEvent[]; start: number; target: number | null }) {
  return (
    <ol className="timeline compact">
      {linesOf(events).map((line) => {
        const [first] = line
        const last = line.at(-1)
        if (!first || !last) return null
        const isTarget = line.some(({ seq }) => seq === target)
        return (
          <li key={first.seq} id={`e-${first.seq}`} className="entry" aria-current={isTarget ? 'true' : undefined}>
            <Link className="seq" href={`${location.pathname}#e-${first.seq}`}>
              {first.seq}
            </Link>
            <time dateTime={first.at}>{offset(Date.parse(first.at) - start)}</time>
            <span className="text row">
              {line.length > 1 && <code>{toolOf(first)}</code>}
              {line.map((event) => {
                const { shape, tone, word } = signOf(event)
                return (
                  <span key={event.seq} className={`mark tone-${tone}`} title={event.detail}>
                    <Sign shape={shape} />
                    {word}
                  </span>
                )
              })}
              <span className="ellipsis">
                <Inert text={last.kind === 'tool_finished' ? found(last.metadata.result) : last.detail} />
              </span>
            </span>
          </li>
        )
      })}
    </ol>
  )
}

/** Rows of one call in one attempt, in the order in which the calls began. */
function linesOf(events: IncidentEvent[]): IncidentEvent[][] {
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

function toolOf(event: IncidentEvent): string {
  const { tool } = event.metadata as { tool?: unknown }
  return typeof tool === 'string' ? tool : ''
}
