import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { AuditRow } from '../../domain/audit.ts'
import { ask, type Page } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert, inertText } from '../inert.tsx'
import { useLive } from '../live.tsx'
import { go, Link, type Place, usePlace, withSearch } from '../router.tsx'
import { missing, useSession } from '../session.ts'
import { Failed, Loading, Nothing } from '../states.tsx'
import { moment } from '../time.ts'

/** First parts of the words: the rest is in the row. */
const kinds = ['approval', 'grant', 'incident', 'config', 'device', 'token', 'operator', 'sign_in', 'security']

/** Who did what, and when. */
export function AuditPage() {
  const { data: session } = useSession()
  const refused = missing(session, 'audit')
  return (
    <>
      <header>
        <Heading title="Audit" />
      </header>
      {refused ? <p className="said">{refused}</p> : <Entries />}
    </>
  )
}

function Entries() {
  const place = usePlace()
  const asked = new URLSearchParams({ limit: '50' })
  for (const name of ['who', 'what', 'cursor']) {
    const value = place.search.get(name)
    if (value) asked.set(name, value)
  }
  const since = place.search.get('since')
  if (since) asked.set('since', `${since}T00:00:00Z`)
  const audit = useQuery({
    queryKey: ['audit', asked.toString()],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => ask<Page<AuditRow>>(`/audit?${asked}`, { signal }),
  })
  const [isOld, setIsOld] = useState(false)
  useLive(({ actor, kind }) => {
    if (actor.startsWith('user:') || kind === 'security_event') setIsOld(true)
  })
  const again = () => {
    setIsOld(false)
    void audit.refetch()
  }
  const isFiltered = ['who', 'what', 'since'].some((name) => place.search.has(name))
  return (
    <>
      <Filters place={place} key={place.search.toString()} />
      {audit.error && <Failed error={audit.error} isKept={audit.data !== undefined} again={again} />}
      {audit.isPending && <Loading what="the audit" />}
      {audit.data && (
        <div className="sheet">
          <div role="status">
            {isOld && !place.search.has('cursor') && (
              <button type="button" className="bar" onClick={again}>
                Somebody did something: show it
              </button>
            )}
          </div>
          {audit.data.items.length > 0 ? (
            <Table items={audit.data.items} place={place} />
          ) : (
            <Nothing title={isFiltered ? 'Nothing fits these filters.' : 'Nobody has done anything yet.'}>
              {isFiltered && <Link href="/audit">Show all</Link>}
            </Nothing>
          )}
        </div>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {place.search.has('cursor') ? <Link href={withSearch(place, { cursor: null })}>← Newest</Link> : <span />}
        {audit.data?.nextCursor && <Link href={withSearch(place, { cursor: audit.data.nextCursor })}>Older →</Link>}
      </nav>
    </>
  )
}

function Filters({ place }: { place: Place }) {
  const what = place.search.get('what')
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = (name: string) => String(form.get(name) ?? '').trim() || null
    go(withSearch(place, { who: text('who'), since: text('since'), cursor: null }))
  }
  return (
    <search className="filters">
      <form className="row" onSubmit={submit}>
        <label className="row">
          Who
          <input name="who" type="text" maxLength={100} defaultValue={place.search.get('who') ?? ''} />
        </label>
        <label className="row">
          Since
          <input name="since" type="date" defaultValue={place.search.get('since') ?? ''} />
        </label>
        <button type="submit">Show</button>
      </form>
      <fieldset className="facet">
        <legend className="visually-hidden">What</legend>
        {kinds.map((word) => (
          <button
            type="button"
            key={word}
            aria-pressed={what === word}
            onClick={() => go(withSearch(place, { what: what === word ? null : word, cursor: null }))}
          >
            {word.replace('_', ' ')}
          </button>
        ))}
      </fieldset>
    </search>
  )
}

function Table({ items, place }: { items: AuditRow[]; place: Place }) {
  return (
    <table>
      <caption className="visually-hidden">Who did what, newest first</caption>
      <thead>
        <tr>
          <th scope="col" className="wide">
            When
          </th>
          <th scope="col">Who</th>
          <th scope="col">What</th>
        </tr>
      </thead>
      <tbody>
        {items.map((entry) => (
          <tr key={entry.id}>
            <td className="wide nowrap">{moment(entry.at)}</td>
            <td className="name wraps">
              <Link href={withSearch(place, { who: entry.who, cursor: null })}>
                <Inert text={entry.who} />
              </Link>
              {entry.address && <div className="small soft mono nowrap">{inertText(entry.address)}</div>}
            </td>
            <td className="wraps">
              <div className="row">
                <code className={entry.what.startsWith('security') ? 'tone-critical strong' : 'strong'}>
                  {entry.what}
                </code>
                <Subject entry={entry} />
              </div>
              <Inert text={entry.detail} />
              <div className="under small soft">{moment(entry.at)}</div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** What it was done to, as a link where it has a page. */
function Subject({ entry: { what, subject, incidentId } }: { entry: AuditRow }) {
  const href = subject.startsWith('apr_')
    ? `/approvals/${encodeURIComponent(subject)}`
    : incidentId
      ? `/incidents/${incidentId}`
      : what.startsWith('config.')
        ? `/config#${subject}`
        : null
  const text = <Inert text={subject} />
  return (
    <span className="small mono wraps">
      {href ? <Link href={href}>{text}</Link> : <span className="soft">{text}</span>}
    </span>
  )
}
