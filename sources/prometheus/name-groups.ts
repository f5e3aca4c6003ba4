/** Lines of a list of groups. */
const maxGroups = 40
/** Members of a group that are shown. */
const maxExamples = 2

/** Names with a common beginning: `prefix`, their number, and some of their ends. */
type NameGroup = { prefix: string; count: number; endings: string[] }

type Held = { prefix: string; names: readonly string[] }

/**
 * Groups names by beginning, word by word: the largest group is taken apart while all fit a list. A
 * group of one is its name. In the names' order.
 */
export function groupNames(names: readonly string[]): NameGroup[] {
  if (names.length === 0) return []
  let groups: Held[] = [{ prefix: '', names: [...names].sort() }]
  for (;;) {
    const parts = new Map(groups.map((group) => [group, takeApart(group)]))
    const next = groups
      .filter((group) => (parts.get(group)?.length ?? 0) > 1)
      // The first words are listed, however many.
      .filter((group) => groups.length === 1 || groups.length - 1 + (parts.get(group)?.length ?? 0) <= maxGroups)
      .reduce<Held | null>((best, each) => (best && best.names.length >= each.names.length ? best : each), null)
    if (!next) return groups.map(tell)
    groups = groups.flatMap((group) => (group === next ? (parts.get(group) ?? []) : [group]))
  }
}

/** By the next word. A name that ends here is a part by itself. */
function takeApart({ prefix, names }: Held): Held[] {
  if (names.length < 2) return []
  const parts = Map.groupBy(names, (name) => {
    const end = name.indexOf('_', prefix.length)
    return end < 0 ? name : name.slice(0, end + 1)
  })
  const found = [...parts].map(([own, each]) => ({ prefix: own, names: each }))
  // All of them go on with the same word: that is no choice, and the next one may be.
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

/** The whole words that both begin with. */
function sharedBeginning(one: string, other: string): string {
  let end = 0
  while (end < one.length && one[end] === other[end]) end += 1
  return one.slice(0, one.lastIndexOf('_', end - 1) + 1)
}
