import { type RefObject, useState } from 'react'
import type { IncidentRole, Severity } from '../../domain/incident.ts'
import { AddressFacet, ChipFilter, Facet, SearchField, toOptions } from '../fields.tsx'
import { statuses } from '../marks.tsx'
import { Link, navigate, type PageLocation, withSearch } from '../router.tsx'
import type { GroupedBy } from './lines.ts'

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

const groupOptions = [
  ['cause', 'cause'],
  ['resource', 'resource'],
  ['alert', 'alert name'],
] as const

/** Reads from the address how the list is grouped. */
export function groupedBy({ search }: PageLocation): GroupedBy | null {
  return groupOptions.find(([by]) => by === search.get('by'))?.[0] ?? null
}

/** Shows the filters, which are in the address, so that a link shows the view of its sender. */
export function Filters({ place, field }: { place: PageLocation; field: RefObject<HTMLInputElement | null> }) {
  const [isOpen, setOpen] = useState(false)
  const by = groupedBy(place)
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
          <label key={name} className="row between">
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
      <ChipFilter name="Group" value={wordOf(groupOptions, by) ?? 'none'}>
        <Facet
          legend="Group by"
          options={groupOptions}
          chosen={by === null ? [] : [by]}
          onToggle={(word) => navigate(withSearch(place, { by: word === by ? null : word }))}
        />
        <p className="soft small">
          "By cause" groups incidents of one type that began together, under the incident that is investigated first.
          The page of every other incident shows whether that incident has the same cause.
        </p>
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

/** Sets any number of values of a parameter, joined by commas. */
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
