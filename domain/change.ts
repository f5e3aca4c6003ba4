import { z } from 'zod'
import { chooseResource, type KnownResource, namesToLookUp } from './alert-resource.ts'
import { formatResourceSearch, formatSpan, truncate } from './format.ts'
import { parseResourceKey, type ResourceRef, resourceKey, resourceRef } from './registry.ts'
import type { ResourceRule } from './resource-rules.ts'

/**
 * Senders of deployments and of changes of configuration. Every text of a change is untrusted: it
 * is escaped for people, and marked as data for a model.
 */

export const changeSources = ['generic', 'github', 'gitlab'] as const

/** A change as its sender reports it. */
export type Change = {
  source: (typeof changeSources)[number]
  /** A value that is equal in all repeats of one delivery. */
  delivery: string
  at: string
  title: string
  author: string | null
  url: string | null
  revision: string | null
  environment: string | null
  /** Names or keys (`kind:id`) of the changed resources, as the sender gave them. */
  resources: string[]
  labels: Record<string, string>
}

/** `ignored`: why a readable delivery contains no change. */
export type ParsedChanges = { ok: true; changes: Change[]; ignored: string | null } | { ok: false; reason: string }

/** A stored change about one resource. A change about several resources has a row for each. */
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
  /** The changed resource; null if the registry knows none of the names in the change. */
  resource: resourceRef.nullable(),
  /** The labels or names that determined the resource, or that were tried without success. */
  why: z.string(),
  labels: z.record(z.string(), z.string()),
})
export type StoredChange = z.infer<typeof storedChange>

/**
 * The response to a delivery of changes, with one entry for each resource. `ignored`: why the
 * response has no entries.
 */
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

/**
 * A change near a given resource. `steps`: the distance along dependencies and hosts; 0 for the
 * resource itself.
 */
export const nearChange = storedChange.extend({ steps: z.number().int() })
export type NearChange = z.infer<typeof nearChange>

/**
 * Formats how long before or after `from` a change was made: `4 min before it began`, or `4 min
 * ago` if `from` is not the beginning of the incident.
 */
function formatDistance(atIso: string, from: { iso: string; isBegin: boolean }): string {
  const distanceMs = Date.parse(from.iso) - Date.parse(atIso)
  if (!from.isBegin) return `${formatSpan(distanceMs)} ago`
  return distanceMs >= 0 ? `${formatSpan(distanceMs)} before it began` : `${formatSpan(-distanceMs)} after it began`
}

const maxTitleCharacters = 160
const maxWordCharacters = 60

/** Shortens a change for a model. The context and the result of a tool use this form. */
export function summarizeChange(change: NearChange, from: { iso: string; isBegin: boolean }): Record<string, unknown> {
  const { at, title, author, revision, environment, url, source, resource, steps } = change
  const short = (text: string | null): string | null => text && truncate(text, maxWordCharacters)
  const fields = {
    when: formatDistance(at, from),
    at,
    title: truncate(title, maxTitleCharacters),
    // Leaves the field empty if the change is on the resource itself.
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
 * Chooses changes around the beginning of an incident: first the changes before the beginning, the
 * latest first, then the changes after it.
 */
export function chooseNearest(changes: readonly NearChange[], beganIso: string): NearChange[] {
  const newestFirst = changes.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
  const began = Date.parse(beganIso)
  const before = newestFirst.filter(({ at }) => Date.parse(at) <= began)
  const after = newestFirst.filter(({ at }) => Date.parse(at) > began)
  // Prefers changes before the beginning, because they may be the cause. Changes after the
  // beginning may be repairs.
  const kept = new Set([...before, ...after.toReversed()].slice(0, maxContextChanges))
  return newestFirst.filter((each) => kept.has(each))
}

/**
 * The resource of a change: the one that the sender names; otherwise the one that the configured
 * rules for changes find; otherwise the one that the labels name, as for an alert. Names choose
 * among known resources and never add one.
 */
type ChangeResource = {
  /** The resource under the key that is equal for all its names; null if no resource was found. */
  resource: ResourceRef | null
  why: string
}

/** `alert`: the configured rules for alerts, which also apply to the labels of a change. */
export type ChangeRules = { change: readonly ResourceRule[]; alert: readonly ResourceRule[] }

type Named = Pick<Change, 'resources' | 'labels'>

/** Lists all names that could decide, so that one query to the registry finds all of them. */
export function changeNamesToLookUp({ resources, labels }: Named, rules: ChangeRules): string[] {
  if (resources.length === 0) return namesToLookUp(labels, [...rules.change, ...rules.alert])
  return resources.map((name) => (parseResourceKey(name)?.id ?? name).toLowerCase())
}

/** Returns at least one entry, perhaps without a resource. Names of one resource give one entry. */
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
  // Prefers an id over a name, because a unit `web-1.nginx` also has the name `web-1`.
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
  // Tries every rule, because one repository may contain several resources.
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
