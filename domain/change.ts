import { z } from 'zod'
import { chooseResource, type KnownResource, namesToLookUp } from './alert-resource.ts'
import { formatResourceSearch, formatSpan, truncate } from './format.ts'
import { parseResourceKey, type ResourceRef, resourceKey, resourceRef } from './registry.ts'
import type { ResourceRule } from './resource-rules.ts'

/**
 * A deployment or a change of configuration. Every text is a stranger's: inert for people, fenced
 * for a model.
 */

export const changeSources = ['generic', 'github', 'gitlab'] as const

/** A change as its sender tells it. */
export type Change = {
  source: (typeof changeSources)[number]
  /** The same for every repeat of one delivery. */
  delivery: string
  at: string
  title: string
  author: string | null
  url: string | null
  revision: string | null
  environment: string | null
  /** Names or keys (`kind:id`) of what it is about, as the sender gave them. */
  resources: string[]
  labels: Record<string, string>
}

/** `ignored`: why a delivery that can be read holds no change. */
export type ParsedChanges = { ok: true; changes: Change[]; ignored: string | null } | { ok: false; reason: string }

/** A stored change about one resource. One about several is a row for each. */
export const storedChange = z.object({
  id: z.string(),
  at: z.string(),
  receivedAt: z.string(),
  source: z.enum(changeSources),
  title: z.string(),
  author: z.string().nullable(),
  url: z.string().nullable(),
  revision: z.string().nullable(),
  environment: z.string().nullable(),
  /** Null: nothing that the registry knows was found. */
  resource: resourceRef.nullable(),
  /** What decided about the resource, or what was tried. */
  why: z.string(),
  labels: z.record(z.string(), z.string()),
})
export type StoredChange = z.infer<typeof storedChange>

/** The answer to a delivery of changes, an entry a resource; `ignored` says why there is none. */
export const takenChanges = z.object({
  changes: z.array(
    z.object({
      id: z.string(),
      outcome: z.enum(['stored', 'repeated']),
      resource: z.string().nullable(),
      why: z.string(),
    }),
  ),
  ignored: z.string().nullable(),
})

/** A change near a resource. `steps`: how far along its needs and hosts; 0 is the resource. */
export const nearChange = storedChange.extend({ steps: z.number().int() })
export type NearChange = z.infer<typeof nearChange>

/** `4 min before it began`; of a moment that is no begin, `4 min ago`. */
function formatDistance(atIso: string, from: { iso: string; isBegin: boolean }): string {
  const distanceMs = Date.parse(from.iso) - Date.parse(atIso)
  if (!from.isBegin) return `${formatSpan(distanceMs)} ago`
  return distanceMs >= 0 ? `${formatSpan(distanceMs)} before it began` : `${formatSpan(-distanceMs)} after it began`
}

const maxTitleCharacters = 160
const maxWordCharacters = 60

/** What a model is shown of a change: short, and the same in the context and as an answer. */
export function summarizeChange(change: NearChange, from: { iso: string; isBegin: boolean }): Record<string, unknown> {
  const { at, title, author, revision, environment, url, source, resource, steps } = change
  const short = (text: string | null): string | null => text && truncate(text, maxWordCharacters)
  const fields = {
    when: formatDistance(at, from),
    at,
    title: truncate(title, maxTitleCharacters),
    // The resource itself needs no word.
    onWhatItNeeds: steps > 0 && resource ? resourceKey(resource) : null,
    source,
    author: short(author),
    revision: short(revision),
    environment: short(environment),
    url: url !== null && url.length <= 200 ? url : null,
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

const maxContextChanges = 5

/**
 * Changes around an incident's beginning: the nearest before it, then those after, newest first.
 */
export function chooseNearest(changes: readonly NearChange[], beganIso: string): NearChange[] {
  const newestFirst = changes.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
  const began = Date.parse(beganIso)
  const before = newestFirst.filter(({ at }) => Date.parse(at) <= began)
  const after = newestFirst.filter(({ at }) => Date.parse(at) > began)
  // What came after can be a repair; the one that nobody may miss lies before.
  const kept = new Set([...before, ...after.toReversed()].slice(0, maxContextChanges))
  return newestFirst.filter((each) => kept.has(each))
}

/**
 * Finds the resources of a change: those its sender names; else those that the site's rules for
 * changes give; else those of its labels, as for an alert. A name chooses among what the registry
 * knows and makes nothing known.
 */
type ChangeResource = {
  /** By the name that all names of one thing share; null where nothing was found. */
  resource: ResourceRef | null
  why: string
}

/** `alert`: the rules for alerts of the site, which hold for changes with the same labels. */
export type ChangeRules = { change: readonly ResourceRule[]; alert: readonly ResourceRule[] }

type Named = Pick<Change, 'resources' | 'labels'>

/** Every name that could decide, for one look-up in the registry. */
export function changeNamesToLookUp({ resources, labels }: Named, rules: ChangeRules): string[] {
  if (resources.length === 0) return namesToLookUp(labels, [...rules.change, ...rules.alert])
  return resources.map((name) => (parseResourceKey(name)?.id ?? name).toLowerCase())
}

/** One entry at least. Two names of one thing are one. */
export function chooseChangeResources(
  change: Named,
  rules: ChangeRules,
  known: readonly KnownResource[],
): ChangeResource[] {
  const chosen =
    change.resources.length > 0
      ? change.resources.map((name) => chooseNamed(name, known))
      : chooseByLabels(change.labels, rules, known)
  const byKey = new Map(
    chosen.map((each) => [each.resource ? `${each.resource.kind}:${each.resource.id}` : each.why, each]),
  )
  return [...byKey.values()]
}

function chooseNamed(name: string, known: readonly KnownResource[]): ChangeResource {
  const key = parseResourceKey(name)
  const text = name.toLowerCase()
  const byId = known.filter((each) =>
    key ? each.kind === key.kind && each.id === key.id : each.id.toLowerCase() === text,
  )
  // An id goes before a name: a unit `web-1.nginx` answers to `web-1` too.
  const meant = byId.length > 0 || key ? byId : known.filter(({ names }) => names.includes(text))
  const things = [...new Set(meant.map(({ canonical }) => canonical))].sort()
  const [only] = things
  if (only !== undefined && things.length === 1) return { resource: parseResourceKey(only), why: `it names ${name}` }
  if (things.length > 1) return { resource: null, why: `ambiguous: ${name} may be ${things.slice(0, 10).join(' or ')}` }
  return { resource: null, why: `${name} is not known` }
}

function chooseByLabels(
  labels: Change['labels'],
  { change: rules, alert }: ChangeRules,
  known: readonly KnownResource[],
): ChangeResource[] {
  // One repository may be about several things, so that no rule hides the next one.
  const ruled = rules.flatMap((rule) => {
    const value = labels[rule.label]
    if (value === undefined) return []
    const found = chooseResource({ [rule.label]: value }, [rule], known)
    const isByRule = found.resource?.kind === rule.kind
    return isByRule ? [toChosen(found, known)] : []
  })
  return ruled.length > 0 ? ruled : [toChosen(chooseResource(labels, [...rules, ...alert], known), known)]
}

function toChosen(found: ReturnType<typeof chooseResource>, known: readonly KnownResource[]): ChangeResource {
  const { resource } = found
  const canonical = resource && known.find(({ kind, id }) => kind === resource.kind && id === resource.id)?.canonical
  return { resource: canonical ? parseResourceKey(canonical) : resource, why: formatResourceSearch(found) }
}
