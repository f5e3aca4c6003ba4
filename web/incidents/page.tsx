import { useEffect, useRef } from 'react'
import { idIn, pathOfId } from '../../domain/pasted-id.ts'
import { Heading } from '../heading.tsx'
import { useKeys } from '../keys.ts'
import { go, Link, usePlace, withSearch } from '../router.tsx'
import { useSession } from '../session.ts'
import { Failed, Loading, Nothing } from '../states.tsx'
import { AskBox } from './ask-box.tsx'
import { useCursorRow } from './cursor-row.ts'
import { Facets } from './facets.tsx'
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
