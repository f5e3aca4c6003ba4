import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { ask, type Page } from '../api.ts'
import { SearchField } from '../fields.tsx'
import { Heading } from '../heading.tsx'
import { Exact, Inert } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { useLive } from '../live.tsx'
import { Mark } from '../marks.tsx'
import { useNow } from '../now.ts'
import { queryClient } from '../query-client.ts'
import { go, Link, usePlace, withSearch } from '../router.tsx'
import { Failed, Loading, Nothing } from '../states.tsx'
import { moment, span } from '../time.ts'
import { Expected } from './expected.tsx'

type Alert = {
  id: string
  source: string
  fingerprint: string
  status: 'firing' | 'resolved' | 'unknown'
  name: string
  labels: Record<string, string>
  annotations: Record<string, string>
  startsAt: string
  endsAt: string | null
  count: number
  firstSeenAt: string
  lastSeenAt: string
  incidentId: string | null
  raw: { title?: string } & Record<string, unknown>
}

/** What the sources sent, and what was read from it: for the question why an incident opened, or did not. */
export function AlertsPage() {
  const place = usePlace()
  const search = useRef<HTMLInputElement>(null)
  const asked = new URLSearchParams([...place.search].filter(([name]) => ['status', 'q', 'cursor'].includes(name)))
  asked.set('limit', '50')
  const alerts = useQuery({
    queryKey: ['alerts', asked.toString()],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => ask<Page<Alert>>(`/alerts?${asked}`, { signal }),
  })
  useKeys({ '/': () => search.current?.focus() })
  useLive(({ kind }) => {
    if (kind === 'alert_received' && !place.search.has('cursor'))
      void queryClient.invalidateQueries({ queryKey: ['alerts'] })
  })
  const chosen = place.search.get('status')
  return (
    <>
      <header>
        <Heading title="Alerts" />
      </header>
      <Expected />
      <search className="filters">
        <SearchField place={place} field={search} label="Search names, titles, fingerprints" />
        <fieldset className="facet">
          <legend className="visually-hidden">Status</legend>
          {(['firing', 'resolved', 'unknown'] as const).map((word) => (
            <button
              type="button"
              key={word}
              aria-pressed={chosen === word}
              onClick={() => go(withSearch(place, { status: chosen === word ? null : word, cursor: null }))}
            >
              {marks[word].word}
            </button>
          ))}
        </fieldset>
      </search>
      {alerts.error && (
        <Failed error={alerts.error} isKept={alerts.data !== undefined} again={() => void alerts.refetch()} />
      )}
      {alerts.isPending && <Loading what="alerts" />}
      {alerts.data && (
        <div className="sheet">
          {alerts.data.items.length > 0 ? (
            <ul className="things">
              {alerts.data.items.map((alert) => (
                <AlertRow key={alert.id} alert={alert} />
              ))}
            </ul>
          ) : (
            <Nothing title={chosen || place.search.has('q') ? 'No alert fits these filters.' : 'No alerts yet.'}>
              Point a source at <code>/api/v1/ingest/alertmanager</code> or <code>/api/v1/ingest/generic</code> with a
              token of role ingest.
            </Nothing>
          )}
        </div>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {place.search.has('cursor') ? <Link href={withSearch(place, { cursor: null })}>← Newest</Link> : <span />}
        {alerts.data?.nextCursor && <Link href={withSearch(place, { cursor: alerts.data.nextCursor })}>Older →</Link>}
      </nav>
    </>
  )
}

const marks = {
  firing: { shape: 'triangle', tone: 'warning', word: 'firing' },
  resolved: { shape: 'check', tone: 'good', word: 'ended' },
  // Its sender fell silent, or ended many at once.
  unknown: { shape: 'ring', tone: 'quiet', word: 'unknown' },
} as const

function AlertRow({ alert }: { alert: Alert }) {
  const now = useNow()
  const { raw, labels, annotations, ...rest } = alert
  return (
    <li>
      <div className="row">
        <Mark {...marks[alert.status]} />
        <strong className="wraps">
          <Inert text={raw.title ?? alert.name} />
        </strong>
        <span className="soft small" title={moment(alert.lastSeenAt)}>
          <Inert text={alert.source} /> · {alert.count === 1 ? 'once' : `${alert.count} times`}, last{' '}
          {span(now - Date.parse(alert.lastSeenAt))} ago
        </span>
        {alert.incidentId ? (
          <Link href={`/incidents/${alert.incidentId}`}>Incident</Link>
        ) : (
          <span className="soft small">orphan: ended before it began</span>
        )}
      </div>
      <p className="labels">
        {Object.entries(labels).map(([name, value]) => (
          <code key={name}>
            <Inert text={`${name}=${value}`} />
          </code>
        ))}
      </p>
      <details>
        <summary>Normalised and raw</summary>
        <div className="two">
          <div className="stack tight">
            <h2>Normalised</h2>
            <Exact value={{ ...rest, labels, annotations }} label="Alert as Nightshift keeps it" />
          </div>
          <div className="stack tight">
            <h2>As read from the source</h2>
            <Exact value={raw} label="Alert as read from its source" />
          </div>
        </div>
      </details>
    </li>
  )
}
