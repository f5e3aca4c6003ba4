import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { formatSpan } from '../../domain/format.ts'
import type { Operator } from '../../domain/operator.ts'
import { ask, type Page } from '../api.ts'
import { type Column, DataTable } from '../data-table.tsx'
import { Inert } from '../inert.tsx'
import { Heading, Nothing } from '../page-frame.tsx'
import { type Place, usePlace } from '../router.tsx'
import { useSession } from '../session.ts'
import { formatMoment, useNow } from '../time.ts'
import { PersonForm } from './person-form.tsx'

/** People: what each may decide, when they were last seen, and how to change it. */
export function PeoplePage({ title }: { title: string }) {
  const place = usePlace()
  const cursor = place.search.get('cursor')
  const people = useQuery({
    queryKey: ['people', cursor],
    queryFn: ({ signal }) =>
      ask<Page<Operator>>(`/operators?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { signal }),
  })
  return (
    <>
      <header>
        <Heading title={title} />
      </header>
      <div className="stack">
        <PeopleTable people={people} place={place} />
      </div>
    </>
  )
}

function PeopleTable({ people, place }: { people: UseQueryResult<Page<Operator>>; place: Place }) {
  const { data: session } = useSession()
  const now = useNow()
  return (
    <DataTable
      query={people}
      what="people"
      place={place}
      directions={['← First', 'More →']}
      above={
        <div className="row">
          <PersonForm button="Add a person" person={null} isSelf={false} />
        </div>
      }
      caption="People, by name"
      columns={columnsAt(now, session?.name ?? '')}
      toKey={({ id }) => id}
      empty={<Nothing title="Nobody here.">Add a person, then mint a token for them.</Nothing>}
    />
  )
}

function columnsAt(now: number, self: string): Column<Operator>[] {
  const formatSeen = ({ lastSeenAt }: Operator) =>
    lastSeenAt ? `${formatSpan(now - Date.parse(lastSeenAt))} ago` : 'never'
  return [
    {
      head: 'Name',
      className: 'wraps',
      cell: (person) => <PersonName person={person} isSelf={person.name === self} seen={formatSeen(person)} />,
    },
    {
      head: 'Role',
      cell: ({ role, disabledAt }) => (
        <>
          {role}
          {disabledAt && (
            <div className="small tone-critical strong" title={`since ${formatMoment(disabledAt)}`}>
              disabled
            </div>
          )}
        </>
      ),
    },
    { head: 'Decides about risks up to', className: 'wide', cell: ({ maxRisk }) => maxRisk },
    {
      head: 'In incidents of type',
      className: 'wide mono wraps',
      cell: (person) => <Inert text={formatTypes(person)} />,
    },
    {
      head: 'Last seen',
      className: 'wide nowrap',
      hint: ({ lastSeenAt }) => (lastSeenAt ? formatMoment(lastSeenAt) : undefined),
      cell: formatSeen,
    },
    {
      head: '',
      className: 'num',
      cell: (person) => <PersonForm button="Change" person={person} isSelf={person.name === self} />,
    },
  ]
}

function PersonName({ person, isSelf, seen }: { person: Operator; isSelf: boolean; seen: string }) {
  const { name, issuer, maxRisk } = person
  return (
    <>
      <strong>
        <Inert text={name} />
      </strong>
      {isSelf && <span className="soft"> you</span>}
      {issuer && (
        <div className="small soft">
          role from <Inert text={issuer} />
        </div>
      )}
      <div className="under small soft">
        up to {maxRisk}, types: <Inert text={formatTypes(person)} />; seen {seen}
      </div>
    </>
  )
}

function formatTypes({ incidentTypes }: Operator): string {
  return incidentTypes === null ? 'all' : incidentTypes.join(', ') || 'none'
}
