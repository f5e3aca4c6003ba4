import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { withSpaces } from '../../domain/format.ts'
import type { AuditRow } from '../../domain/operator.ts'
import { ask, type Page } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { AddressFacet } from '../fields.tsx'
import { useLive } from '../live.tsx'
import { Inert, inertText } from '../markdown.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { go, Link, type Place, pickSearch, usePlace, withSearch } from '../router.tsx'
import { formatMoment } from '../time.ts'

/** First parts of the words: the rest is in the row. */
const kinds = ['approval', 'grant', 'incident', 'config', 'device', 'token', 'operator', 'sign_in', 'security']
const kindOptions = kinds.map((kind) => [kind, withSpaces(kind)] as const)

/** Who did what, and when. */
export function AuditPage({ title }: { title: string }) {
  const place = usePlace()
  return (
    <>
      <header>
        <Heading title={title} />
      </header>
      <Filters place={place} key={place.search.toString()} />
      <AuditTable place={place} />
    </>
  )
}

function AuditTable({ place }: { place: Place }) {
  const { audit, isOld, again } = useAudit(place)
  const isFiltered = ['who', 'what', 'since'].some((name) => place.search.has(name))
  return (
    <DataTable
      query={audit}
      what="the audit"
      again={again}
      place={place}
      bar={
        <div role="status">
          {isOld && !place.search.has('cursor') && (
            <button type="button" className="bar" onClick={again}>
              Somebody did something: show it
            </button>
          )}
        </div>
      }
      caption="Who did what, newest first"
      columns={columnsAt(place)}
      toKey={({ id }) => id}
      empty={
        <Nothing title={isFiltered ? 'Nothing fits these filters.' : 'Nobody has done anything yet.'}>
          {isFiltered && <Link href="/audit">Show all</Link>}
        </Nothing>
      }
    />
  )
}

/** A page of the audit, and whether somebody did something since it was read. */
function useAudit(place: Place) {
  const since = place.search.get('since')
  const search = pickSearch(place, ['who', 'what', 'cursor'], {
    limit: '50',
    ...(since && { since: `${since}T00:00:00Z` }),
  })
  const audit = useQuery({
    queryKey: ['audit', search],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => ask<Page<AuditRow>>(`/audit?${search}`, { signal }),
  })
  const [isOld, setIsOld] = useState(false)
  useLive(({ actor, kind }) => {
    if (actor.startsWith('user:') || kind === 'security_event') setIsOld(true)
  })
  const again = () => {
    setIsOld(false)
    void audit.refetch()
  }
  return { audit, isOld, again }
}

function Filters({ place }: { place: Place }) {
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
      <AddressFacet place={place} name="what" legend="What" options={kindOptions} />
    </search>
  )
}

function columnsAt(place: Place): Column<AuditRow>[] {
  return [
    { head: 'When', className: 'wide nowrap', cell: ({ at }) => formatMoment(at) },
    {
      head: 'Who',
      className: 'name wraps',
      cell: ({ who, address }) => (
        <>
          <Link href={withSearch(place, { who, cursor: null })}>
            <Inert text={who} />
          </Link>
          {address && <div className="small soft mono nowrap">{inertText(address)}</div>}
        </>
      ),
    },
    {
      head: 'What',
      className: 'wraps',
      cell: (entry) => (
        <>
          <div className="row">
            <code className={entry.what.startsWith('security') ? 'tone-critical strong' : 'strong'}>{entry.what}</code>
            <Subject entry={entry} />
          </div>
          <Inert text={entry.detail} />
          <div className="under small soft">{formatMoment(entry.at)}</div>
        </>
      ),
    },
  ]
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
