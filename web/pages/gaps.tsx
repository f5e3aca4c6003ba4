import { useQuery } from '@tanstack/react-query'
import type { CapabilityGap } from '../../domain/status.ts'
import { ask, type Page } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { AddressFacet, toOptions } from '../fields.tsx'
import { Inert } from '../inert.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { Link, pickSearch, usePlace } from '../router.tsx'
import { formatMoment } from '../time.ts'

const categories: CapabilityGap['category'][] = ['investigation', 'remediation', 'notification']

const columns: Column<CapabilityGap>[] = [
  {
    head: 'What was missing',
    className: 'wraps',
    cell: ({ description, at, actor }) => (
      <>
        <Inert text={description} />
        <div className="soft small">
          {formatMoment(at)}, <Inert text={actor.replace(/^agent:.*/, 'the agent')} />
        </div>
      </>
    ),
  },
  { head: 'For', className: 'wide', cell: ({ category }) => category },
  {
    head: 'Incident',
    className: 'nowrap',
    cell: ({ incidentId }) => <Link href={`/incidents/${incidentId}`}>Open</Link>,
  },
]

/** What investigations lacked: the list of what to build next. */
export function GapsPage({ title }: { title: string }) {
  const place = usePlace()
  const search = pickSearch(place, ['category', 'cursor'], { limit: '50' })
  const gaps = useQuery({
    queryKey: ['gaps', search],
    queryFn: ({ signal }) => ask<Page<CapabilityGap>>(`/capability-gaps?${search}`, { signal }),
  })
  return (
    <>
      <header>
        <Heading title={title} />
      </header>
      <search className="filters">
        <AddressFacet place={place} name="category" legend="Category" options={toOptions(categories)} />
      </search>
      <DataTable
        query={gaps}
        what="capability gaps"
        place={place}
        caption="Capability gaps, newest first"
        columns={columns}
        toKey={({ id }) => id}
        empty={
          <Nothing title="No gaps reported.">
            When an investigation lacks a tool, it says so here instead of working around it.
          </Nothing>
        }
      />
    </>
  )
}
