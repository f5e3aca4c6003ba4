import { useMutation } from '@tanstack/react-query'
import { useDeferredValue, useEffect, useMemo, useState } from 'react'
import type { IncidentEvent } from '../../domain/event.ts'
import { listReadings } from '../../domain/message.ts'
import { SelectField } from '../fields.tsx'
import { Failed } from '../page-frame.tsx'
import { Link, type Place, withSearch } from '../router.tsx'
import { Entry, getText } from './entry.tsx'
import { pageRows, readEarlier } from './rows.ts'

const views = ['full', 'json'] as const
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

/** The log of an incident in two views: its rows as sentences, and as they are stored. Rows before the first that is here come by a press, or where the address names one. */
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
      {shown.length === 0 && <p className="nothing">No matching rows. Choose everybody to see all.</p>}
    </section>
  )
}

/** The way to rows before the first that is here. */
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

/** The row that the address names, brought into sight as soon as it is drawn. */
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

function ViewSwitch({ place, view }: { place: Place; view: (typeof views)[number] }) {
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
