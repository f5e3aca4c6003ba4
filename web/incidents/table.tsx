import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { formatSpan, truncate } from '../../domain/format.ts'
import type { ListedIncident } from '../../domain/incident-detail.ts'
import type { Page } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { kinds, Remarks, Resource, SeverityMark, StatusMark, TypeName } from '../marks.tsx'
import { Link, type Place } from '../router.tsx'
import { formatMoment, useNow } from '../time.ts'

type Props = {
  list: UseQueryResult<Page<ListedIncident>>
  place: Place
  /** The row that the keys are at. */
  current: string | null
  bar: ReactNode
  empty: ReactNode
}

export function IncidentTable({ list, current, ...rest }: Props) {
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
          <Remarks incident={incident} />
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
        <Remarks incident={incident} />
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
