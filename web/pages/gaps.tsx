import { useQuery } from '@tanstack/react-query'
import { ask, type Page } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { go, Link, usePlace, withSearch } from '../router.tsx'
import { Failed, Loading, Nothing } from '../states.tsx'
import { moment } from '../time.ts'

type Gap = { id: string; incidentId: string; category: string; description: string; actor: string; at: string }

const categories = ['investigation', 'remediation', 'notification']

/** What investigations lacked: the list of what to build next. */
export function GapsPage() {
  const place = usePlace()
  const chosen = place.search.get('category')
  const asked = new URLSearchParams({ limit: '50' })
  for (const name of ['category', 'cursor']) {
    const value = place.search.get(name)
    if (value) asked.set(name, value)
  }
  const gaps = useQuery({
    queryKey: ['gaps', asked.toString()],
    queryFn: ({ signal }) => ask<Page<Gap>>(`/capability-gaps?${asked}`, { signal }),
  })
  return (
    <>
      <header>
        <Heading title="Capability gaps" />
      </header>
      <search className="filters">
        <fieldset className="facet">
          <legend className="visually-hidden">Category</legend>
          {categories.map((word) => (
            <button
              type="button"
              key={word}
              aria-pressed={chosen === word}
              onClick={() => go(withSearch(place, { category: chosen === word ? null : word, cursor: null }))}
            >
              {word}
            </button>
          ))}
        </fieldset>
      </search>
      {gaps.error && <Failed error={gaps.error} isKept={gaps.data !== undefined} again={() => void gaps.refetch()} />}
      {gaps.isPending && <Loading what="capability gaps" />}
      {gaps.data && (
        <div className="sheet">
          {gaps.data.items.length > 0 ? (
            <table>
              <caption className="visually-hidden">Capability gaps, newest first</caption>
              <thead>
                <tr>
                  <th scope="col">What was missing</th>
                  <th scope="col" className="wide">
                    For
                  </th>
                  <th scope="col">Incident</th>
                </tr>
              </thead>
              <tbody>
                {gaps.data.items.map((gap) => (
                  <tr key={gap.id}>
                    <td className="wraps">
                      <Inert text={gap.description} />
                      <div className="soft small">
                        {moment(gap.at)}, <Inert text={gap.actor.replace(/^agent:.*/, 'the agent')} />
                      </div>
                    </td>
                    <td className="wide">{gap.category}</td>
                    <td className="nowrap">
                      <Link href={`/incidents/${gap.incidentId}`}>Open</Link>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <Nothing title="No gaps reported.">
              When an investigation lacks a tool, it says so here instead of working around it.
            </Nothing>
          )}
        </div>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {place.search.has('cursor') ? <Link href={withSearch(place, { cursor: null })}>← Newest</Link> : <span />}
        {gaps.data?.nextCursor && <Link href={withSearch(place, { cursor: gaps.data.nextCursor })}>Older →</Link>}
      </nav>
    </>
  )
}
