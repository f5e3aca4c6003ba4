import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import type { TimeZone } from '../../domain/format.ts'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import { idIn, pathOfId } from '../../domain/step-key.ts'
import { DataList, Table } from '../data-table.tsx'
import { useCursor, useKeys } from '../keys.tsx'
import { columnsAt, incidentsOf, rowProps } from '../list/columns.tsx'
import { Filters, groupedBy } from '../list/filters.tsx'
import { type ListLine, toLines } from '../list/lines.ts'
import { useIncidents } from '../list/live.ts'
import { Peek } from '../list/peek.tsx'
import { Several } from '../list/several.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { Link, navigate, type PageLocation, pickSearch, usePlace, withSearch } from '../router.tsx'
import { useNow, useZone } from '../time.ts'

const passedOn = ['status', 'severity', 'type', 'role', 'group', 'owner', 'q', 'cursor']
const days = ['from', 'to']

/**
 * Builds the query for the API. The days in the address are complete days in the time zone of the
 * page.
 */
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

/**
 * Whether the screen is a phone's, on which there is no room beside the list, so that a row leads
 * to its page.
 */
const isNarrow = () => matchMedia('(max-width: 820px)').matches

export function IncidentsPage({ title }: { title: string }) {
  const place = usePlace()
  const { list, newer, showNewer } = useIncidents(toQuery(place, useZone()))
  const field = useRef<HTMLInputElement>(null)
  const [turned, setTurned] = useState<ReadonlyMap<string, boolean>>(new Map())
  const { chosen, setChosen, choose } = useChosen()
  const by = groupedBy(place)
  const items = list.data?.items ?? none
  const lines = useMemo(() => toLines(items, by, turned), [items, by, turned])
  const turn = ({ id, group }: ListLine) => setTurned(new Map(turned).set(id, !group?.isOpen))
  const peek = usePeek(place, lines, turn)
  useKeys({
    '/': () => field.current?.focus(),
    x: () => lines.filter(({ id }) => id === peek.current).forEach(choose),
  })
  const pastedId = idIn(place.search.get('q'))
  // Opens the page of an id that was pasted into the search.
  useEffect(() => {
    if (pastedId) navigate(pathOfId(pastedId), { replace: true })
  }, [pastedId])
  const now = useNow()
  const isPart = place.search.has('cursor') || list.data?.nextCursor != null
  const presses = useRef({ choose, turn, look: peek.look })
  presses.current = { choose, turn, look: peek.look }
  const columns = useMemo(
    () =>
      columnsAt(now, {
        chosen,
        isPart,
        onChoose: (line) => presses.current.choose(line),
        onTurn: (line) => presses.current.turn(line),
        onLook: (line) => presses.current.look(line.id),
      }),
    [now, chosen, isPart],
  )
  return (
    <div className={peek.id === null ? undefined : 'beside-drawer'}>
      <Heading title={title} />
      <Filters place={place} field={field} />
      <DataList
        query={list}
        what="incidents"
        className="table"
        place={place}
        bar={<Newer count={newer} onShow={() => void showNewer()} />}
        empty={<NoIncidents isFiltered={[...passedOn, ...days].some((name) => place.search.has(name))} />}
      >
        {() => (
          <Table
            items={lines}
            caption="Incidents, newest first"
            className="table"
            columns={columns}
            toKey={({ id, isSetIn }) => (isSetIn ? `in ${id}` : id)}
            toRowProps={(line) => rowProps(line, peek.current)}
          />
        )}
      </DataList>
      <Several chosen={items.filter(({ id }) => chosen.has(id))} onLeft={(ids) => setChosen(new Set(ids))} />
      {peek.id !== null && (
        <Peek {...peek.props} id={peek.id} listed={items.find(({ id }) => id === peek.id) ?? null} />
      )}
    </div>
  )
}

const none: ListedIncident[] = []

/** Selects rows: all of a group, or none if all were selected. */
function useChosen() {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const choose = (line: ListLine) => {
    const ids = incidentsOf(line).map(({ id }) => id)
    const isOn = ids.every((id) => chosen.has(id))
    const next = new Set(chosen)
    for (const id of ids) isOn ? next.delete(id) : next.add(id)
    setChosen(next)
  }
  return { chosen, setChosen, choose }
}

/** Milliseconds for which the cursor must stay on a row before the peek follows. */
const restMs = 100

/**
 * Opens the incident in the address beside the list, so that links to it work. Keys and their row
 * change it.
 */
function usePeek(place: PageLocation, lines: ListLine[], turn: (line: ListLine) => void) {
  const id = place.search.get('peek')
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const look = (to: string | null, replace = false) => {
    clearTimeout(timer.current)
    navigate(withSearch(place, { peek: to }), { replace })
  }
  const open = (line: ListLine) => {
    if (line.group) turn(line)
    else if (id !== null || isNarrow()) navigate(`/incidents/${line.id}`)
    else look(line.id)
  }
  const follow = (line: ListLine) => {
    clearTimeout(timer.current)
    if (id !== null && !line.group) timer.current = setTimeout(() => look(line.id, true), restMs)
  }
  const { current, move } = useCursor(lines, open, { at: id, onMove: follow })
  useEffect(() => () => clearTimeout(timer.current), [])
  // Opens the page itself on a phone.
  useEffect(() => {
    if (id !== null && isNarrow()) navigate(`/incidents/${id}`, { replace: true })
  }, [id])
  const props = {
    onClose: () => look(null, true),
    onStep: move,
    back: () => document.getElementById(`row-${current}`)?.querySelector<HTMLElement>('a.name, .fold') ?? null,
  }
  return { id, current, look, props }
}

function Newer({ count, onShow }: { count: number; onShow(): void }): ReactNode {
  return (
    <div role="status">
      {count > 0 && (
        <button type="button" className="bar" onClick={onShow}>
          {count === 1 ? 'Show 1 new incident' : `Show ${count} new incidents`}
        </button>
      )}
    </div>
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
      Incidents open when an alert arrives at <code>/api/v1/ingest/alertmanager</code>, or when you ask a question
      above.
    </Nothing>
  )
}
