/** One place where two values differ: the way to it, and what stands there in each. `undefined`: nothing does. */
export type Change = { path: string; from: unknown; to: unknown }

/** What was changed from one value to another, in the order of the first, new places last. */
export function changes(from: unknown, to: unknown, path = ''): Change[] {
  if (!isBranch(from) || !isBranch(to) || Array.isArray(from) !== Array.isArray(to)) {
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ path, from, to }]
  }
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key) =>
    changes(own(from, key), own(to, key), Array.isArray(from) ? `${path}[${key}]` : path ? `${path}.${key}` : key),
  )
}

type Branch = Record<string, unknown>

function isBranch(value: unknown): value is Branch {
  return typeof value === 'object' && value !== null
}

function own(branch: Branch, key: string): unknown {
  return Object.hasOwn(branch, key) ? branch[key] : undefined
}
