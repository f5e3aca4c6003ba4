import { mostSummaryBytes } from '../kind.ts'

type Limits = { items: number; characters: number; depth: number }

/** From the whole to little: the first that fits is shown. */
const limits: readonly Limits[] = [
  { items: Number.MAX_SAFE_INTEGER, characters: 1_000, depth: 60 },
  { items: 20, characters: 200, depth: 5 },
  { items: 10, characters: 120, depth: 4 },
  { items: 6, characters: 80, depth: 3 },
  { items: 4, characters: 60, depth: 2 },
  { items: 3, characters: 40, depth: 1 },
]
/** What is deeper is no answer for people. */
const mostDepth = 60
/** Below this the whole is printed with a line for each value; above, with a line for each item. */
const prettyCharacters = 200_000

/** Is the value nested deeper than anything that is read? Without recursion, since a stranger wrote it. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > mostDepth) return true
    const next: unknown[] = []
    for (const each of level)
      if (typeof each === 'object' && each !== null) for (const one of Object.values(each)) next.push(one)
    level = next
  }
  return false
}

/** The value within what a model reads, beside `head`; what was left out is counted in its place. */
export function fitValue(head: Record<string, unknown>, value: unknown): Record<string, unknown> {
  for (const limit of limits) {
    const summary = { ...head, value: shorten(value, limit, 0) }
    if (Buffer.byteLength(JSON.stringify(summary)) <= mostSummaryBytes) return summary
  }
  return { ...head, value: describe(value), narrow: 'with select' }
}

function shorten(value: unknown, limit: Limits, depth: number): unknown {
  if (typeof value === 'string') return cut(value, limit.characters)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= limit.depth) return describe(value)
  if (Array.isArray(value)) {
    const kept = value.slice(0, limit.items).map((each) => shorten(each, limit, depth + 1))
    return value.length > limit.items ? [...kept, `… ${value.length - limit.items} more`] : kept
  }
  const entries = Object.entries(value)
  const kept = entries.slice(0, limit.items).map(([key, each]) => [cut(key, 60), shorten(each, limit, depth + 1)])
  if (entries.length > limit.items) kept.push(['…', `${entries.length - limit.items} more`])
  return Object.fromEntries(kept)
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return `[…] ${value.length} items`
  return typeof value === 'object' && value !== null ? `{…} ${Object.keys(value).length} names` : cut(String(value), 40)
}

/** The whole as lines. */
export function printLines(value: unknown): string {
  const compact = JSON.stringify(value) ?? ''
  if (compact.length <= prettyCharacters) return JSON.stringify(value, null, 1) ?? ''
  if (Array.isArray(value)) return value.map((each) => JSON.stringify(each)).join('\n')
  if (typeof value !== 'object' || value === null) return compact
  return Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}: ${JSON.stringify(each)}`)
    .join('\n')
}

export const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1)}…`.toWellFormed()
