import { keepPreviousData, type UseQueryResult } from '@tanstack/react-query'
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import { formatSpan, type TimeZone, truncate } from '../../domain/format.ts'
import type { IncidentRole, Severity } from '../../domain/incident.ts'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { idIn, pathOfId } from '../../domain/step-key.ts'
import { ask, type ListPage, queryClient, useAsk } from '../api.ts'
import { AskBox } from '../ask-box.tsx'
import { type Column, DataTable } from '../data-table.tsx'
import { AddressFacet, Facet, SearchField, toOptions } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { useCursorRow, useKeys } from '../keys.tsx'
import { useLive } from '../live.tsx'
import { kinds, RemarkList, Resource, SeverityMark, StatusMark, statuses, TypeName } from '../marks.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { Link, navigate, type PageLocation, pickSearch, usePlace, withSearch } from '../router.tsx'
import { useSession } from '../session.ts'
import { formatMoment, useNow, useZone } from '../time.ts'

type Props = {
  list: UseQueryResult<ListPage<ListedIncident>>
  place: PageLocation
  /** The row that the keys are at. */
  current: string | null
  bar: ReactNode
  empty: ReactNode
}

function IncidentTable({ list, current, ...rest }: Props) {
  const now = useNow()
  return (
    <DataTable
      query={list}
      what="incidents"
      caption="Incidents, newest first"
      columns={columnsAt(now)}
      toKey={({ id }) => id}
      toRowProps={({ id }) => ({ id: `row-${id}`, 'data-current': id === current })}
      {...rest}
    />
  )
}

function columnsAt(now: number): Column<ListedIncident>[] {
  const formatAge = ({ createdAt }: ListedIncident) => formatSpan(now - Date.parse(createdAt))
  return [
    { head: 'Severity', cell: ({ severity }) => <SeverityMark severity={severity} /> },
    {
      head: 'Status',
      className: 'wide',
      cell: (incident) => (
        <>
          <StatusMark status={incident.status} />
          <RemarkList incident={incident} />
        </>
      ),
    },
    { head: 'Incident', cell: (incident) => <Title incident={incident} age={formatAge(incident)} /> },
    {
      head: 'Type',
      className: 'wide mono',
      cell: ({ type }) => (
        <Link className="plain" href={`/incidents?type=${type}`} title={`Only ${type}`}>
          <TypeName type={type} />
        </Link>
      ),
    },
    { head: 'Role', className: 'wide', cell: ({ role }) => role ?? <span className="soft">–</span> },
    {
      head: 'Age',
      className: 'wide num nowrap',
      hint: ({ createdAt }) => formatMoment(createdAt),
      cell: formatAge,
    },
    {
      head: 'Last event',
      className: 'wide',
      cell: ({ lastEvent }) => lastEvent && <LastEvent event={lastEvent} now={now} />,
    },
  ]
}

function Title({ incident, age }: { incident: ListedIncident; age: string }) {
  const { id, title, resource, status } = incident
  return (
    <>
      <Link className="title" href={`/incidents/${id}`}>
        <Inert text={title} />
      </Link>
      <div className="small">
        <Resource resource={resource} />
      </div>
      <div className="under small">
        <StatusMark status={status} /> <span className="soft">· {age}</span>
        <RemarkList incident={incident} />
      </div>
    </>
  )
}

function LastEvent({ event, now }: { event: NonNullable<ListedIncident['lastEvent']>; now: number }) {
  return (
    <>
      <span className="soft nowrap">
        {formatSpan(now - Date.parse(event.at))} ago · {kinds[event.kind]?.word ?? event.kind}
      </span>
      <div className="small wraps">
        <Inert text={truncate(event.detail, 90)} />
      </div>
    </>
  )
}

/** Rows of one incident come in bursts: they are read once. */
const settleMs = 400

/**
 * A page of incidents that stays where it is: rows change in place as their incidents do, and what is new above them is
 * counted, not pushed in.
 */
function useIncidents(search: string) {
  const key = ['incidents', search]
  const list = useAsk<ListPage<ListedIncident>>(key, `/incidents?${search}`, { placeholderData: keepPreviousData })
  const [newer, setNewer] = useState(0)
  const touched = useRef(new Set<string>())
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const onFirstPage = !new URLSearchParams(search).has('cursor')
  const asked = useRef(search)
  asked.current = search

  const settle = useCallback(async () => {
    const shown = queryClient.getQueryData<ListPage<ListedIncident>>(['incidents', search])
    const ids = [...touched.current]
    touched.current.clear()
    if (!shown) return
    const fresh = await ask<ListPage<ListedIncident>>(`/incidents?${search}`).catch(() => null)
    if (!fresh) return
    const known = new Set(shown.items.map(({ id }) => id))
    // An answer to another list says nothing of this one.
    if (asked.current !== search) return
    if (onFirstPage) setNewer(fresh.items.filter(({ id }) => !known.has(id)).length)
    const now = new Map(fresh.items.map((incident) => [incident.id, incident]))
    // One that no longer fits the filter stays in its row, as what it has become.
    for (const id of ids.filter((each) => known.has(each) && !now.has(each))) {
      const found = await ask<ListedIncident>(`/incidents/${id}`).catch(() => null)
      if (found) now.set(id, { ...found, lastEvent: shown.items.find((each) => each.id === id)?.lastEvent ?? null })
    }
    queryClient.setQueryData<ListPage<ListedIncident>>(['incidents', search], (page) =>
      page ? { ...page, items: page.items.map((item) => now.get(item.id) ?? item) } : page,
    )
  }, [search, onFirstPage])

  useLive(({ incidentId, kind, detail, at, seq }) => {
    queryClient.setQueryData<ListPage<ListedIncident>>(key, (page) =>
      page
        ? {
            ...page,
            items: page.items.map((item) =>
              item.id === incidentId ? { ...item, lastEvent: { kind, detail, at, seq } } : item,
            ),
          }
        : page,
    )
    touched.current.add(incidentId)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => void settle(), settleMs)
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list has its own count
  useEffect(() => {
    setNewer(0)
    return () => clearTimeout(timer.current)
  }, [search])

  const showNewer = async () => {
    setNewer(0)
    await queryClient.invalidateQueries({ queryKey: key })
  }
  return { list, newer, showNewer }
}

const passedOn = ['status', 'severity', 'type', 'role', 'group', 'owner', 'q', 'cursor']
const days = ['from', 'to']

/** The query of the API: the days of the address are whole days in the zone that the page shows. */
function toQuery(place: PageLocation, zone: TimeZone): string {
  const start = (name: string, add: number) => {
    const day = place.search.get(name) ?? ''
    if (!/^\d{4}-\d\d-\d\d$/.test(day)) return null
    const at = new Date(`${day}T00:00:00${zone === 'utc' ? 'Z' : ''}`)
    if (Number.isNaN(at.getTime())) return null
    at.setDate(at.getDate() + add)
    return at.toISOString()
  }
  const [since, until] = [start('from', 0), start('to', 1)]
  return pickSearch(place, passedOn, { limit: '50', ...(since && { since }), ...(until && { until }) })
}

export function IncidentsPage({ title }: { title: string }) {
  const place = usePlace()
  const { data: session } = useSession()
  const { list, newer, showNewer } = useIncidents(toQuery(place, useZone()))
  const field = useRef<HTMLInputElement>(null)
  const current = useCursorRow(list.data?.items ?? [], (incident) => navigate(`/incidents/${incident.id}`))
  useKeys({ '/': () => field.current?.focus() })
  const pastedId = idIn(place.search.get('q'))
  // A pasted id is no search: it has one place.
  useEffect(() => {
    if (pastedId) navigate(pathOfId(pastedId), { replace: true })
  }, [pastedId])
  return (
    <>
      <header>
        <Heading title={title} />
        <AskBox session={session ?? null} />
      </header>
      <Filters place={place} field={field} />
      <IncidentTable
        list={list}
        place={place}
        current={current}
        bar={
          <div role="status">
            {newer > 0 && (
              <button type="button" className="bar" onClick={() => void showNewer()}>
                {newer === 1 ? 'Show 1 new incident' : `Show ${newer} new incidents`}
              </button>
            )}
          </div>
        }
        empty={<NoIncidents isFiltered={[...passedOn, ...days].some((name) => place.search.has(name))} />}
      />
    </>
  )
}

function NoIncidents({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Nothing title="No incident fits these filters.">
        <Link href="/incidents">Show all</Link>
      </Nothing>
    )
  }
  return (
    <Nothing title="No incidents yet.">
      They open when an alert arrives at <code>/api/v1/ingest/alertmanager</code>, or when you ask something above.
    </Nothing>
  )
}

const statusOptions = Object.entries(statuses).map(([status, { word }]) => [status, word] as const)
const severityOptions = toOptions<Severity>(['critical', 'warning', 'info'])
const ownerOptions = [
  ['me', 'mine'],
  ['none', 'without an owner'],
] as const
const dayFields = [
  ['from', 'From'],
  ['to', 'to'],
] as const
const roleOptions = toOptions<IncidentRole>(['leader', 'follower'])

/** Filters live in the address: a link shows what its sender saw. */
function Filters({ place, field }: { place: PageLocation; field: RefObject<HTMLInputElement | null> }) {
  const type = place.search.get('type')
  return (
    <search className="filters">
      <SearchField place={place} field={field} label="Search titles and resources" />
      <ManyFacet place={place} name="status" legend="Status" options={statusOptions} />
      <ManyFacet place={place} name="severity" legend="Severity" options={severityOptions} />
      <ManyFacet place={place} name="role" legend="Role" options={roleOptions} />
      <AddressFacet place={place} name="owner" legend="Owner" options={ownerOptions} />
      <span className="row days">
        {dayFields.map(([name, label]) => (
          <label key={name} className="row small">
            {label}
            <input
              type="date"
              value={place.search.get(name) ?? ''}
              onChange={({ target }) =>
                navigate(withSearch(place, { [name]: target.value, cursor: null }), { replace: true })
              }
            />
          </label>
        ))}
      </span>
      {type && (
        <Link className="button" href={withSearch(place, { type: null, cursor: null })}>
          type {type} ✕<span className="visually-hidden"> remove this filter</span>
        </Link>
      )}
      {place.search.get('group') && (
        <Link className="button" href={withSearch(place, { group: null, cursor: null })}>
          one group ✕<span className="visually-hidden"> remove this filter</span>
        </Link>
      )}
    </search>
  )
}

type ManyFacetProps = {
  place: PageLocation
  name: string
  legend: string
  options: readonly (readonly [string, string])[]
}

/** Any number of the values of a parameter, joined by commas. */
function ManyFacet({ place, name, ...rest }: ManyFacetProps) {
  const chosen = (place.search.get(name) ?? '').split(',').filter(Boolean)
  const toggle = (word: string) => {
    const next = chosen.includes(word) ? chosen.filter((each) => each !== word) : [...chosen, word]
    navigate(withSearch(place, { [name]: next.join(','), cursor: null }))
  }
  return <Facet {...rest} chosen={chosen} onToggle={toggle} />
}
