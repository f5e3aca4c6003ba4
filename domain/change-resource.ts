import { chooseResource, type KnownResource, namesToLookUp } from './alert-resource.ts'
import type { ResourceRule } from './alert-resource-rules.ts'
import type { Change } from './change.ts'
import { formatResourceSearch } from './format.ts'
import { parseResourceKey } from './registry.ts'
import type { ResourceRef } from './resource.ts'

/**
 * Which resources a change is about. What its sender names decides; without a name the site's rules for changes, each that fits; then
 * labels as those of an alert. As with alerts, a name chooses among what the registry knows and makes nothing known.
 */
export type ChangeResource = {
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
  // What is called so by its id goes before what is called so as well: a unit `web-1.nginx` answers to `web-1`, too.
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
