/**
 * Puts back what a result leaves out as "unchanged since seq N": the row holds the whole, and only
 * the model was shown a part. What was shown stays in its order, with what was left out behind it.
 */
export function completed(value: unknown, shown: ReadonlyMap<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((each) => completed(each, shown))
  if (!isObject(value)) return value
  const { rest, ...own } = value
  const filled = Object.fromEntries(Object.entries(own).map(([key, each]) => [key, completed(each, shown)]))
  const since = /^unchanged since (the context|seq \d+)$/.exec(String(rest))?.[1]
  if (since === undefined) return rest === undefined ? filled : { ...filled, rest }
  const before = sameIn(shown.get(since), own)
  return before ? { ...filled, ...without(before, filled) } : { ...filled, rest }
}

const identities = ['pid', 'id', 'path', 'name', 'startsAt', 'start_time'] as const

/**
 * The fullest thing in there that has the same names as this one, of those that both have; at least
 * one.
 */
function sameIn(value: unknown, thing: Record<string, unknown>): Record<string, unknown> | null {
  const found = everyObject(value).filter((each) => {
    const both = identities.filter((key) => key in each && key in thing)
    const isNamed = both.some((key) => key !== 'name' || !('startsAt' in thing) || both.includes('startsAt'))
    return isNamed && both.every((key) => each[key] === thing[key])
  })
  return found.sort((a, b) => Object.keys(b).length - Object.keys(a).length)[0] ?? null
}

function everyObject(value: unknown): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap(everyObject)
  return isObject(value) ? [value, ...Object.values(value).flatMap(everyObject)] : []
}

const without = (all: Record<string, unknown>, known: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(all).filter(([key]) => !(key in known)))

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
