import { keepPreviousData } from '@tanstack/react-query'
import { useRef } from 'react'
import type { NearChange } from '../../domain/change.ts'
import { type InventoryKind, inventoryKinds, sayVicinity } from '../../domain/kinds.ts'
import type { ListedRelation, ListedResource, ShownResource } from '../../domain/listed-resource.ts'
import { type ListPage, useAsk } from '../api.ts'
import { CopyButton } from '../copy.tsx'
import { type Column, DataTable } from '../data-table.tsx'
import { SearchField, SelectField } from '../fields.tsx'
import { Inert, inertText, TextLink } from '../inert.tsx'
import { useKeys } from '../keys.tsx'
import { Labels, Resource as ResourceMark } from '../marks.tsx'
import { spelled } from '../own-command.ts'
import { Failed, Heading, Loading, Nothing, QueryState, Section } from '../page-frame.tsx'
import { Link, navigate, type PageLocation, pickSearch, usePlace, withSearch } from '../router.tsx'
import { formatMoment } from '../time.ts'
import { ClusterThing } from './cluster.tsx'
import { ServerNow } from './database.tsx'
import { TopologyPicture } from './topology.tsx'

const maxShown = 10

/** Lists recent deployments and changes of a resource and its dependencies. */
function ResourceChanges({ kind, id }: { kind: string; id: string }) {
  const path = `/inventory/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}/changes`
  const changes = useAsk<{ items: NearChange[]; found: number }>(['resource-changes', kind, id], path)
  const { data, error } = changes
  const rest = data ? data.found - Math.min(data.items.length, maxShown) : 0
  return (
    <Section className="stack tight" title="Changes of the last 7 days">
      {error && <Failed error={error} isKept={data !== undefined} again={() => void changes.refetch()} />}
      {data && data.items.length === 0 && (
        <p className="soft">No change of this resource, or of what it needs, was reported.</p>
      )}
      <ul className="things">
        {data?.items.slice(0, maxShown).map((change) => (
          <li key={change.id} className="wraps">
            <Change change={change} />
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <p className="soft small">
          {rest} more: {spelled('nightshift changes list --resource')} has them.
        </p>
      )}
    </Section>
  )
}

function Change({ change: { at, title, url, author, revision, source, resource, steps } }: { change: NearChange }) {
  const about = resource ? `${resource.kind}:${resource.id}` : ''
  return (
    <>
      {formatMoment(at)}{' '}
      {url && /^https?:/.test(url) ? (
        <a href={url} rel="noreferrer noopener" target="_blank">
          {inertText(title)}
        </a>
      ) : (
        <Inert text={title} />
      )}{' '}
      <Inert className="soft small" text={[source, author, revision?.slice(0, 12)].filter(Boolean).join(', ')} />
      {steps > 0 && (
        <>
          {' '}
          on <Link href={`/resources/${encodeURIComponent(about)}`}>{inertText(about)}</Link>, which it needs
        </>
      )}
    </>
  )
}

const kindOptions = [
  ['', 'all kinds'] as const,
  ...inventoryKinds.map((kind) => [kind, kind.replaceAll('_', ' ')] as const),
]

const columns: Column<ListedResource>[] = [
  {
    head: 'Resource',
    className: 'wraps',
    cell: (each) => (
      <>
        <ResourceLink name={`${each.kind}:${each.id}`} />
        <div className="soft small">
          <Inert text={[each.name === each.id ? '' : each.name, ...each.aliases].filter(Boolean).join(', ')} />
        </div>
      </>
    ),
  },
  { head: 'Listed by', className: 'wide', cell: ({ sources }) => <Inert text={sources.join(', ')} /> },
  {
    head: 'Last seen',
    className: 'nowrap',
    cell: ({ seenAt, isStale }) => (
      <>
        {formatMoment(seenAt)}
        {isStale && <strong> stale</strong>}
      </>
    ),
  },
]

/** Lists resources, their sources, and their relations. Alerts can be about them. */
export function ResourcesPage({ title }: { title: string }) {
  const place = usePlace()
  const field = useRef<HTMLInputElement>(null)
  const search = pickSearch(place, ['kind', 'q', 'needs', 'needed_by', 'cursor'], { limit: '50' })
  const resources = useAsk<ListPage<ListedResource>>(['resources', search], `/inventory/resources?${search}`, {
    placeholderData: keepPreviousData,
  })
  useKeys({ '/': () => field.current?.focus() })
  const kind = (place.search.get('kind') ?? '') as InventoryKind | ''
  return (
    <>
      <Heading title={title} />
      <search className="filters">
        <SearchField place={place} field={field} label="Search ids, names, addresses" />
        <SelectField
          label="Kind"
          value={kind}
          options={kindOptions}
          onChange={(word) => navigate(withSearch(place, { kind: word || null, cursor: null }))}
        />
        <Around place={place} />
      </search>
      <DataTable
        query={resources}
        what="resources"
        place={place}
        caption="Resources by kind and id"
        columns={columns}
        toKey={({ kind, id }) => `${kind}:${id}`}
        empty={
          <Nothing title={place.search.size > 0 ? 'Nothing fits these filters.' : 'No resources are known yet.'}>
            A platform lists what it runs. Import everything else with{' '}
            <code>{spelled('nightshift inventory import FILE')}</code>.
          </Nothing>
        }
      />
    </>
  )
}

/** Shows whose neighbours the list contains, with a link back to all resources. */
function Around({ place }: { place: PageLocation }) {
  const [needs, neededBy] = [place.search.get('needs'), place.search.get('needed_by')]
  const name = needs ?? neededBy
  if (!name) return null
  return (
    <p className="wraps">
      Only resources {needs ? 'that run on or need' : 'under'} <ResourceLink name={name} />.{' '}
      <Link href={withSearch(place, { needs: null, needed_by: null, cursor: null })}>Show all</Link>
    </p>
  )
}

export function ResourcePage({ id }: { id: string }) {
  const name = decodeURIComponent(id)
  const at = name.indexOf(':')
  const path = `/inventory/resources/${encodeURIComponent(name.slice(0, at))}/${encodeURIComponent(name.slice(at + 1))}`
  const resource = useAsk<ShownResource>(['resource', name], path)
  if (resource.isPending) return <Loading what="the resource" />
  return (
    <>
      <header>
        <div className="row">
          <Heading title={inertText(name)} of={{ href: '/resources', title: 'Resources' }}>
            <span id="resource-name">{inertText(name)}</span>
          </Heading>
          <CopyButton text={name} label="the name of the resource" of="resource-name" />
        </div>
      </header>
      <QueryState query={resource} what="the resource" />
      {resource.data && <Resource resource={resource.data} />}
    </>
  )
}

function Resource({ resource }: { resource: ShownResource }) {
  const names = [resource.name, ...resource.aliases].filter((name) => name !== resource.id)
  return (
    <article className="about">
      <p className="wraps">
        <Inert text={resource.state.observed} />
        {resource.isStale && <strong> Stale: no source has listed this resource for a day.</strong>}
      </p>
      {names.length > 0 && (
        <p className="soft wraps">
          Also known as <Inert text={names.join(', ')} />
        </p>
      )}
      {resource.sameAs.length > 0 && (
        <p className="wraps">
          The same resource as <ResourceLinks names={resource.sameAs} />
        </p>
      )}
      {resource.kind === 'database' && <ServerNow name={resource.id} />}
      {isInCluster(resource) && <ClusterThing kind={resource.kind} id={resource.id} />}
      <TopologyPicture resource={resource} />
      <Fires resource={resource} />
      <Acts acts={resource.acts} />
      <ResourceChanges kind={resource.kind} id={resource.id} />
      <Relations resource={resource} />
      <Section className="stack tight" title="Sources">
        <ul className="things">
          {resource.said.map(({ source, seenAt, attributes }) => (
            <li key={source}>
              <Inert as="strong" text={source} /> <span className="soft small">{formatMoment(seenAt)}</span>
              <Labels texts={Object.entries(attributes).map(([name, value]) => `${name}=${value}`)} />
            </li>
          ))}
        </ul>
      </Section>
    </article>
  )
}

/** Whether the source of a cluster lists the resource, and can read it for the page. */
const isInCluster = ({ kind, said }: ShownResource): boolean =>
  (kind === 'cluster' || kind === 'node' || kind === 'workload') &&
  said.some(({ source }) => source.startsWith('kubernetes:'))

/** Lists direct actions of people on the resource. */
function Acts({ acts }: Pick<ShownResource, 'acts'>) {
  if (acts.length === 0) return null
  return (
    <Section className="stack tight" title="Writes by people">
      <ul className="things">
        {acts.map(({ at, who, did, incidentId }) => (
          <li key={`${at} ${did}`} className="wraps">
            <Inert as="strong" text={who} /> <Inert text={did} /> <span className="soft small">{formatMoment(at)}</span>{' '}
            {incidentId && <Link href={`/incidents/${incidentId}`}>Incident</Link>}
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Fires({ resource: { alerts, incidents } }: { resource: ShownResource }) {
  return (
    <Section className="stack tight" title="Alerts and incidents">
      {alerts.length + incidents.length === 0 && (
        <p className="soft">No alert fires on this resource, and no incident was about it.</p>
      )}
      <ul className="things">
        {alerts.map(({ name, status, startsAt, incidentId }) => (
          <li key={`${name} ${startsAt}`}>
            <strong>{status}</strong> <Inert text={name} /> since {formatMoment(startsAt)}{' '}
            {incidentId && <Link href={`/incidents/${incidentId}`}>Incident</Link>}
          </li>
        ))}
        {incidents.map(({ id, title, status, createdAt }) => (
          <li key={id} className="wraps">
            <TextLink href={`/incidents/${id}`} text={title} />{' '}
            <span className="soft small">
              {status.replaceAll('_', ' ')}, {formatMoment(createdAt)}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Relations({ resource: { relations, disagreements, neighbours, kind, id } }: { resource: ShownResource }) {
  if (relations.length === 0) return null
  const own = `${kind}:${id}`
  const said = disagreements.map(({ relation, values }) => {
    const claims = values.map(({ to, source, seenAt }) => `${source} says ${to} (${formatMoment(seenAt)})`)
    return `Sources disagree on what this resource ${relation.replaceAll('_', ' ')}: ${claims.join(', ')}. Nightshift uses none of these claims to find its neighbours.`
  })
  return (
    <Section className="stack tight" title="Relations">
      {neighbours ? <p className="soft small">{sayVicinity(inertText(own), neighbours)}</p> : null}
      {said.map((text) => (
        <Inert key={text} as="p" className="wraps" text={text} />
      ))}
      <ul className="things">
        {relations.map((relation) => (
          <li key={`${relation.from} ${relation.kind} ${relation.to} ${relation.source}`} className="wraps">
            <Relation relation={relation} own={own} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Relation({
  relation: { from, kind, to, source, hasAuthority },
  own,
}: {
  relation: ListedRelation
  own: string
}) {
  const word = kind.replaceAll('_', ' ')
  return (
    <>
      {from === own ? (
        <>
          {word} <ResourceLink name={to} />
        </>
      ) : (
        <>
          <ResourceLink name={from} /> {word} it
        </>
      )}{' '}
      <span className="soft small">
        according to <Inert text={source} />
        {hasAuthority ? '' : ', a source that extends no permissions'}
      </span>
    </>
  )
}

function ResourceLinks({ names }: { names: string[] }) {
  return names.map((name, at) => (
    <span key={name}>
      {at > 0 && ', '}
      <ResourceLink name={name} />
    </span>
  ))
}

export function ResourceLink({ name }: { name: string }) {
  return (
    <Link href={`/resources/${encodeURIComponent(name)}`}>
      <ResourceMark resource={{ kind: name.slice(0, name.indexOf(':')), id: name.slice(name.indexOf(':') + 1) }} />
    </Link>
  )
}
