import { keepPreviousData, type UseQueryResult } from '@tanstack/react-query'
import { type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from 'react'
import { formatSpan, type TimeZone, truncate } from '../../domain/format.ts'
import type { IncidentRole, Severity } from '../../domain/incident.ts'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { remarks } from '../../domain/status-words.ts'
import { idIn, pathOfId } from '../../domain/step-key.ts'
import { ask, type ListPage, queryClient, useAsk } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { AddressFacet, ChipFilter, Facet, SearchField, toOptions } from '../fields.tsx'
import { Inert, inertText } from '../inert.tsx'
import { useCursorRow, useKeys } from '../keys.tsx'
import { useLive } from '../live.tsx'
import { Mark, Resource, SeverityMark, statuses } from '../marks.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { Link, navigate, type PageLocation, pickSearch, usePlace, withSearch } from '../router.tsx'
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
      className="table"
      columns={columnsAt(now)}
      toKey={({ id }) => id}
      toRowProps={({ id, closedAt }) => ({
        id: `row-${id}`,
        'data-current': id === current,
        ...(closedAt !== null && { className: 'over' }),
      })}
      {...rest}
    />
  )
}

/** The columns of a list of incidents, with ages as of `now`. */
export function columnsAt(now: number): Column<ListedIncident>[] {
  return [
    {
      head: 'Severity',
      isUnseen: true,
      className: 'sev',
      cell: ({ severity }) => <SeverityMark severity={severity} isShort />,
    },
    { head: 'What', className: 'what', cell: (incident) => <Title incident={incident} /> },
    { head: 'Now', className: 'now', cell: (incident) => <Now incident={incident} /> },
    {
      head: 'Owner',
      className: 'owner',
      cell: ({ owner }) => (owner ? <Inert text={owner.name} /> : <span className="soft">–</span>),
    },
    {
      head: 'Age',
      className: 'since num',
      hint: ({ createdAt }) => formatMoment(createdAt),
      cell: ({ createdAt }) => formatSpan(now - Date.parse(createdAt)),
    },
  ]
}

function Title({ incident }: { incident: ListedIncident }) {
  const { id, title, resource } = incident
  return (
    <span className="two">
      <Link className="name" href={`/incidents/${id}`} title={title}>
        <Inert text={title} />
      </Link>
      {resource && !title.includes(resource.id) && <Resource resource={resource} />}
    </span>
  )
}

/** Its status, what is to be known about that, and the newest row of its log. */
function Now({ incident }: { incident: ListedIncident }) {
  const { status, outcome, alerts, lastEvent } = incident
  const { shape, tone, word } = statuses[status]
  const isRepaired = status === 'resolved' && outcome === 'repaired'
  const said = remarks(incident)
  const isFiring = alerts.firing > 0 && incident.closedAt !== null && outcome !== 'expected'
  return (
    <Mark
      shape={shape}
      tone={isFiring ? 'broken' : isRepaired ? 'proved' : tone}
      word={
        <span title={lastEvent?.detail}>
          {[isRepaired ? 'repaired' : word, ...said.map((each) => inertText(each))].join(', ')}
          {lastEvent && (
            <span className="soft">
              {' · '}
              <Inert text={truncate(lastEvent.detail, 90)} />
            </span>
          )}
        </span>
      }
    />
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
      <Heading title={title} />
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
  const [isOpen, setOpen] = useState(false)
  return (
    <search className="filters" data-open={isOpen}>
      <SearchField place={place} field={field} label="Search titles and resources" />
      <button type="button" className="narrow-only" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Filters
      </button>
      <ManyFacet place={place} name="status" legend="Status" options={statusOptions} />
      <ManyFacet place={place} name="severity" legend="Severity" options={severityOptions} />
      <ManyFacet place={place} name="role" legend="Role" options={roleOptions} />
      <ChipFilter name="Owner" value={wordOf(ownerOptions, place.search.get('owner'))}>
        <AddressFacet place={place} name="owner" legend="Owner" options={ownerOptions} />
      </ChipFilter>
      <ChipFilter name="Days" value={describeDays(place)}>
        {dayFields.map(([name, label]) => (
          <label key={name} className="row apart">
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
      </ChipFilter>
      {(['type', 'group'] as const).map((name) => {
        const value = place.search.get(name)
        if (!value) return null
        return (
          <Link key={name} className="button" href={withSearch(place, { [name]: null, cursor: null })}>
            {name === 'type' ? `type ${value}` : 'one group'} ✕
            <span className="visually-hidden"> remove this filter</span>
          </Link>
        )
      })}
    </search>
  )
}

function wordOf(options: readonly (readonly [string, string])[], value: string | null): string | null {
  return options.find(([each]) => each === value)?.[1] ?? null
}

function describeDays({ search }: PageLocation): string | null {
  const [from, to] = [search.get('from'), search.get('to')]
  if (!from && !to) return null
  return [from && `from ${from}`, to && `to ${to}`].filter(Boolean).join(' ')
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
  const words = chosen.map((each) => wordOf(rest.options, each) ?? each)
  return (
    <ChipFilter name={rest.legend} value={words.join(', ') || null}>
      <Facet {...rest} chosen={chosen} onToggle={toggle} />
    </ChipFilter>
  )
}
