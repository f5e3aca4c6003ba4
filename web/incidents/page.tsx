import { type FormEvent, type RefObject, useEffect, useRef, useState } from 'react'
import type { Incident, IncidentStatus, Severity } from '../../domain/incident.ts'
import { idIn, pathOfId } from '../../domain/pasted-id.ts'
import { ask } from '../api.ts'
import { useDraft } from '../draft.ts'
import { SearchField } from '../fields.tsx'
import { Heading } from '../heading.tsx'
import { useCursorRow, useKeys } from '../keys.tsx'
import { statuses } from '../marks.tsx'
import { go, Link, type Place, usePlace, withSearch } from '../router.tsx'
import { missing, type Session, useSession } from '../session.ts'
import { Failed, Loading, Nothing } from '../states.tsx'
import { useIncidents } from './query.ts'
import { IncidentTable } from './table.tsx'

const passedOn = ['status', 'severity', 'type', 'role', 'group', 'q', 'cursor']

export function IncidentsPage() {
  const place = usePlace()
  const { data: session } = useSession()
  const asked = new URLSearchParams([...place.search].filter(([name]) => passedOn.includes(name)))
  asked.set('limit', '50')
  const { list, newer, showNewer } = useIncidents(asked.toString())
  const items = list.data?.items ?? []
  const search = useRef<HTMLInputElement>(null)
  const current = useCursorRow(items, (incident) => go(`/incidents/${incident.id}`))
  useKeys({ '/': () => search.current?.focus() })
  const named = idIn(place.search.get('q'))
  // A pasted id is no search: it has one place.
  useEffect(() => {
    if (named) go(pathOfId(named), { replace: true })
  }, [named])
  const isFiltered = passedOn.some((name) => place.search.has(name))
  const at = place.pathname === '/' ? { ...place, pathname: '/incidents' } : place

  return (
    <>
      <header>
        <Heading title="Incidents" />
        <AskBox session={session ?? null} />
      </header>
      <Facets place={at} search={search} />
      {list.error && <Failed error={list.error} isKept={list.data !== undefined} again={() => void list.refetch()} />}
      {list.isPending && <Loading what="incidents" />}
      {list.data && (
        <div className="sheet">
          <div role="status">
            {newer > 0 && (
              <button type="button" className="bar" onClick={() => void showNewer()}>
                {newer === 1 ? 'Show 1 new incident' : `Show ${newer} new incidents`}
              </button>
            )}
          </div>
          {items.length > 0 ? (
            <IncidentTable items={items} current={current} />
          ) : (
            <Nothing title={isFiltered ? 'No incident fits these filters.' : 'No incidents yet.'}>
              {isFiltered ? (
                <Link href="/incidents">Show all</Link>
              ) : (
                <>
                  They open when an alert arrives at <code>/api/v1/ingest/alertmanager</code>, or when you ask something
                  above.
                </>
              )}
            </Nothing>
          )}
        </div>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {place.search.has('cursor') ? <Link href={withSearch(at, { cursor: null })}>← Newest</Link> : <span />}
        {list.data?.nextCursor && <Link href={withSearch(at, { cursor: list.data.nextCursor })}>Older →</Link>}
      </nav>
    </>
  )
}

const severities: Severity[] = ['critical', 'warning', 'info']
/** Filters live in the address: a link shows what its sender saw. */
export function Facets({ place, search }: { place: Place; search: RefObject<HTMLInputElement | null> }) {
  const type = place.search.get('type')
  const group = place.search.get('group')
  return (
    <search className="filters">
      <SearchField place={place} field={search} label="Search titles and resources" />
      <Facet place={place} name="status" legend="Status" words={Object.keys(statuses) as IncidentStatus[]} />
      <Facet place={place} name="severity" legend="Severity" words={severities} />
      <Facet place={place} name="role" legend="Role" words={['leader', 'follower']} />
      {type && (
        <Link className="button" href={withSearch(place, { type: null, cursor: null })}>
          type {type} ✕<span className="visually-hidden"> remove this filter</span>
        </Link>
      )}
      {group && (
        <Link className="button" href={withSearch(place, { group: null, cursor: null })}>
          one group ✕<span className="visually-hidden"> remove this filter</span>
        </Link>
      )}
    </search>
  )
}

function Facet({ place, name, legend, words }: { place: Place; name: string; legend: string; words: string[] }) {
  const chosen = (place.search.get(name) ?? '').split(',').filter(Boolean)
  const toggle = (word: string) => {
    const next = chosen.includes(word) ? chosen.filter((each) => each !== word) : [...chosen, word]
    go(withSearch(place, { [name]: next.join(','), cursor: null }))
  }
  return (
    <fieldset className="facet">
      <legend className="visually-hidden">{legend}</legend>
      {words.map((word) => (
        <button type="button" key={word} aria-pressed={chosen.includes(word)} onClick={() => toggle(word)}>
          {statuses[word as IncidentStatus]?.word ?? word}
        </button>
      ))}
    </fieldset>
  )
}

/** A question opens a separate incident; its answer is in the timeline, with what it rests on. */
export function AskBox({ session }: { session: Session | null }) {
  const [question, setQuestion] = useDraft('question')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const why = missing(session, 'manage_incident')
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      const opened = await ask<Incident>('/agent', { method: 'POST', body: { question: question.trim() } })
      setQuestion('')
      go(`/incidents/${opened.id}`)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <form onSubmit={submit} className="stack ask-form">
      <div className="ask">
        <input
          type="text"
          aria-label="Ask the agent a question"
          placeholder={why ? 'Only operators may ask' : 'Ask: which host runs vm-osl-3 now?'}
          title={why ?? undefined}
          disabled={why !== null}
          minLength={3}
          maxLength={2000}
          required
          value={question}
          onChange={(event) => setQuestion(event.target.value)}
        />
        <button type="submit" disabled={busy || why !== null} title={why ?? undefined}>
          Ask
        </button>
      </div>
      {error !== null && <Failed error={error} />}
    </form>
  )
}
