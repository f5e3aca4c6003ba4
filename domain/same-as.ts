import { canonicalOrder, type InventoryKind } from './kinds.ts'

/** The one key of each thing that `same_as` gives several names: that of the kind which stands first, then the first by its text. */
export function keysOfGroups(pairs: readonly { left: string; right: string }[]): Map<string, string> {
  const parent = new Map<string, string>()
  const find = (key: string): string => {
    let root = key
    while (parent.get(root) !== undefined && parent.get(root) !== root) root = parent.get(root) as string
    parent.set(key, root)
    return root
  }
  for (const { left, right } of pairs) {
    const [first, second] = [find(left), find(right)]
    if (first === second) continue
    const isFirst = rankOf(first) < rankOf(second) || (rankOf(first) === rankOf(second) && first < second)
    parent.set(isFirst ? second : first, isFirst ? first : second)
  }
  return new Map([...parent.keys()].map((key) => [key, find(key)]))
}

const rankOf = (key: string): number => canonicalOrder.indexOf(key.slice(0, key.indexOf(':')) as InventoryKind)
