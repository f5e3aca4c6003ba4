import { useQuery } from '@tanstack/react-query'
import type { PersonRole } from '../../domain/operator.ts'
import type { Risk } from '../../domain/tool.ts'
import { ask, type Page } from '../api.ts'
import { Heading } from '../heading.tsx'
import { Inert } from '../inert.tsx'
import { useNow } from '../now.ts'
import { Link, usePlace, withSearch } from '../router.tsx'
import { missing, type Session, useSession } from '../session.ts'
import { Failed, Loading, Nothing } from '../states.tsx'
import { moment, span } from '../time.ts'
import { PersonForm } from './person-form.tsx'

export type Person = {
  id: string
  name: string
  role: PersonRole
  maxRisk: Risk
  incidentTypes: string[] | null
  disabledAt: string | null
  issuer: string | null
  lastSeenAt: string | null
  slackUserId: string | null
}

/** People: what each may decide, when they were last seen, and how to change it. */
export function PeoplePage() {
  const { data: session } = useSession()
  const refused = missing(session, 'manage_operators')
  return (
    <>
      <header>
        <Heading title="People" />
      </header>
      {refused ? (
        <p className="said">{refused} Ask an admin to change what somebody may.</p>
      ) : (
        <People session={session ?? null} />
      )}
    </>
  )
}

function People({ session }: { session: Session | null }) {
  const place = usePlace()
  const cursor = place.search.get('cursor')
  const people = useQuery({
    queryKey: ['people', cursor],
    queryFn: ({ signal }) =>
      ask<Page<Person>>(`/operators?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { signal }),
  })
  return (
    <div className="stack">
      {people.error && (
        <Failed error={people.error} isKept={people.data !== undefined} again={() => void people.refetch()} />
      )}
      {people.isPending && <Loading what="people" />}
      {people.data && (
        <>
          <div className="row">
            <PersonForm button="Add a person" person={null} isSelf={false} />
          </div>
          <div className="sheet">
            {people.data.items.length > 0 ? (
              <Table items={people.data.items} self={session?.name ?? ''} />
            ) : (
              <Nothing title="Nobody here.">Add a person, then mint a token for them.</Nothing>
            )}
          </div>
        </>
      )}
      <nav className="pager" aria-label="Pages of the list">
        {cursor ? <Link href={withSearch(place, { cursor: null })}>← First</Link> : <span />}
        {people.data?.nextCursor && <Link href={withSearch(place, { cursor: people.data.nextCursor })}>More →</Link>}
      </nav>
    </div>
  )
}

function Table({ items, self }: { items: Person[]; self: string }) {
  const now = useNow()
  return (
    <table>
      <caption className="visually-hidden">People, by name</caption>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Role</th>
          <th scope="col" className="wide">
            Decides about risks up to
          </th>
          <th scope="col" className="wide">
            In incidents of type
          </th>
          <th scope="col" className="wide">
            Last seen
          </th>
          <td />
        </tr>
      </thead>
      <tbody>
        {items.map((person) => {
          const { name, role, maxRisk, incidentTypes, disabledAt, issuer, lastSeenAt } = person
          const seen = lastSeenAt ? `${span(now - Date.parse(lastSeenAt))} ago` : 'never'
          const types = incidentTypes === null ? 'all' : incidentTypes.join(', ') || 'none'
          return (
            <tr key={person.id}>
              <td className="wraps">
                <strong>
                  <Inert text={name} />
                </strong>
                {name === self && <span className="soft"> you</span>}
                {issuer && (
                  <div className="small soft">
                    role from <Inert text={issuer} />
                  </div>
                )}
                <div className="under small soft">
                  up to {maxRisk}, types: <Inert text={types} />; seen {seen}
                </div>
              </td>
              <td>
                {role}
                {disabledAt && (
                  <div className="small tone-critical strong" title={`since ${moment(disabledAt)}`}>
                    disabled
                  </div>
                )}
              </td>
              <td className="wide">{maxRisk}</td>
              <td className="wide mono wraps">
                <Inert text={types} />
              </td>
              <td className="wide nowrap" title={lastSeenAt ? moment(lastSeenAt) : undefined}>
                {seen}
              </td>
              <td className="num">
                <PersonForm button="Change" person={person} isSelf={name === self} />
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
