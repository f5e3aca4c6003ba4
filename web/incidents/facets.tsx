import type { RefObject } from 'react'
import type { IncidentStatus, Severity } from '../../domain/incident.ts'
import { go, Link, type Place, withSearch } from '../router.tsx'
import { statuses } from '../words.tsx'
import { SearchField } from './search-field.tsx'

const severities: Severity[] = ['critical', 'warning', 'info']
/** Filters live in the address: a link shows what its sender saw. */
export function Facets({ place, search }: { place: Place; search: RefObject<HTMLInputElement | null> }) {
  const type = place.search.get('type')
  const group = place.search.get('group')
  return (
    <search className="filters">
      <SearchField place={place} field={search} label="Search titles and resources" />
      <Facet place={place} name="status" legend="Status" words={Object.keys(statuses) as IncidentStatus[]} />
      <Facet place={place} name="severity" legend="Severity" words={severities} />
      <Facet place={place} name="role" legend="Role" words={['leader', 'follower']} />
      {type && (
        <Link className="button" href={withSearch(place, { type: null, cursor: null })}>
          type {type} ✕<span className="visually-hidden"> remove this filter</span>
        </Link>
      )}
      {group && (
        <Link className="button" href={withSearch(place, { group: null, cursor: null })}>
          one group ✕<span className="visually-hidden"> remove this filter</span>
        </Link>
      )}
    </search>
  )
}

function Facet({ place, name, legend, words }: { place: Place; name: string; legend: string; words: string[] }) {
  const chosen = (place.search.get(name) ?? '').split(',').filter(Boolean)
  const toggle = (word: string) => {
    const next = chosen.includes(word) ? chosen.filter((each) => each !== word) : [...chosen, word]
    go(withSearch(place, { [name]: next.join(','), cursor: null }))
  }
  return (
    <fieldset className="facet">
      <legend className="visually-hidden">{legend}</legend>
      {words.map((word) => (
        <button type="button" key={word} aria-pressed={chosen.includes(word)} onClick={() => toggle(word)}>
          {statuses[word as IncidentStatus]?.word ?? word}
        </button>
      ))}
    </fieldset>
  )
}
