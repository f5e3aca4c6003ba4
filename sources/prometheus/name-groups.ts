/** The most groups of metric names in a list. */
const maxGroups = 40
/** The most names of a group that are shown. */
const maxExamples = 2

/** Metric names with a common beginning: `prefix`, their number, and some of their endings. */
type NameGroup = { prefix: string; count: number; endings: string[] }

type Held = { prefix: string; names: readonly string[] }

/**
 * Groups metric names by their beginning, word by word, in the order of the names. The largest
 * group is split as long as all groups fit into the list. A group with one name is the name itself.
 */
export function groupNames(names: readonly string[]): NameGroup[] {
  if (names.length === 0) return []
  let groups: Held[] = [{ prefix: '', names: [...names].sort() }]
  for (;;) {
    const parts = new Map(groups.map((group) => [group, takeApart(group)]))
    const next = groups
      .filter((group) => (parts.get(group)?.length ?? 0) > 1)
      // Always allows the first split, even if it makes more groups than the limit.
      .filter((group) => groups.length === 1 || groups.length - 1 + (parts.get(group)?.length ?? 0) <= maxGroups)
      .reduce<Held | null>((best, each) => (best && best.names.length >= each.names.length ? best : each), null)
    if (!next) return groups.map(tell)
    groups = groups.flatMap((group) => (group === next ? (parts.get(group) ?? []) : [group]))
  }
}

/** Splits a group by the next word of its names. A name without a next word is a separate part. */
function takeApart({ prefix, names }: Held): Held[] {
  if (names.length < 2) return []
  const parts = Map.groupBy(names, (name) => {
    const end = name.indexOf('_', prefix.length)
    return end < 0 ? name : name.slice(0, end + 1)
  })
  const found = [...parts].map(([own, each]) => ({ prefix: own, names: each }))
  // Splits by a later word if all names have the same next word.
  const [only] = found
  return found.length === 1 && only && only.prefix !== prefix ? takeApart(only) : found
}

function tell({ names }: Held): NameGroup {
  const [first = '', ...others] = names
  if (others.length === 0) return { prefix: first, count: 1, endings: [] }
  const prefix = others.reduce((shared, name) => sharedBeginning(shared, name), first)
  const endings = names.slice(0, maxExamples).map((name) => name.slice(prefix.length))
  return { prefix, count: names.length, endings }
}

/** Returns the complete words with which both metric names begin. */
function sharedBeginning(one: string, other: string): string {
  let end = 0
  while (end < one.length && one[end] === other[end]) end += 1
  return one.slice(0, one.lastIndexOf('_', end - 1) + 1)
}
