import { maxSummaryBytes } from '../kind.ts'

type Limits = { items: number; characters: number; depth: number }

/** Limits of a summary, the most detailed first. The first limits that a summary fits are used. */
const limits: readonly Limits[] = [
  { items: Number.MAX_SAFE_INTEGER, characters: 1_000, depth: 60 },
  { items: 20, characters: 200, depth: 5 },
  { items: 10, characters: 120, depth: 4 },
  { items: 6, characters: 80, depth: 3 },
  { items: 4, characters: 60, depth: 2 },
  { items: 3, characters: 40, depth: 1 },
]
/** The deepest nesting of a JSON value that is accepted. */
const maxDepth = 60
/**
 * The most characters of a JSON value that is written with one line per value. A longer value is
 * written with one line per item.
 */
const prettyCharacters = 200_000

/** Whether a JSON value is nested too deeply. Uses no recursion, because the value is untrusted. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxDepth) return true
    const next: unknown[] = []
    for (const each of level)
      if (typeof each === 'object' && each !== null) for (const one of Object.values(each)) next.push(one)
    level = next
  }
  return false
}

/**
 * Shortens a JSON value until it fits into a summary together with `head`. The number of omitted
 * parts replaces them.
 */
export function fitValue(head: Record<string, unknown>, value: unknown): Record<string, unknown> {
  for (const limit of limits) {
    const summary = { ...head, value: shorten(value, limit, 0) }
    if (Buffer.byteLength(JSON.stringify(summary)) <= maxSummaryBytes) return summary
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

/** Writes a complete JSON value as lines. */
export function printLines(value: unknown): string {
  const compact = JSON.stringify(value) ?? ''
  if (compact.length <= prettyCharacters) return JSON.stringify(value, null, 1) ?? ''
  if (Array.isArray(value)) return value.map((each) => JSON.stringify(each)).join('\n')
  if (typeof value !== 'object' || value === null) return compact
  return Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}: ${JSON.stringify(each)}`)
    .join('\n')
}

export const cut = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1)}…`.toWellFormed()

/**
 * Selects a part of JSON by a path such as `items[0].name`, `items[*].state` or
 * `labels["app.kubernetes.io/name"]`.
 */
type Step = { key: string } | { index: number } | { all: true }

type SelectedValue = {
  value: unknown
  /** If the path selects nothing: the place where it ended, and the names that exist there. */
  missing: { at: string; names: string[] } | null
}

const maxSteps = 12
const step =
  /(?:^|\.)([A-Za-z_$@][\w$@-]*)|(?:\[(?=\d+\])|\.(?=\d+(?![\w-])))(\d{1,6})\]?|\[\*?\]|\["((?:[^"\\]|\\["\\])*)"\]/y

/** Reads the steps of a path. Null for an invalid path. `$` is the complete value. */
function readSteps(path: string): Step[] | null {
  const steps: Step[] = []
  const text = path.replace(/^\$(?=[.[]|$)\.?/, '')
  for (let at = 0; at < text.length; at = step.lastIndex) {
    step.lastIndex = at
    const found = step.exec(text)
    if (!found || steps.length === maxSteps) return null
    const [, name, index, quoted] = found
    if (name !== undefined) steps.push({ key: name })
    else if (index !== undefined) steps.push({ index: Number(index) })
    else if (quoted !== undefined) steps.push({ key: quoted.replace(/\\(["\\])/g, '$1') })
    else steps.push({ all: true })
  }
  return steps
}

/**
 * Returns the part of a JSON value that the path selects. Null for an invalid path. `[*]` takes
 * every item, without the items in which the rest of the path leads nowhere.
 */
export function selectPart(value: unknown, path: string): SelectedValue | null {
  const steps = readSteps(path)
  if (steps === null) return null
  let found: unknown[] = [value]
  let isMany = false
  for (const [at, each] of steps.entries()) {
    const next = found.flatMap((one) => take(one, each))
    if (next.length === 0) {
      const place = steps.slice(0, at).map(writeStep).join('').slice(0, 80).toWellFormed()
      return { value: isMany ? [] : null, missing: { at: place || 'the answer', names: listNames(found[0]) } }
    }
    isMany ||= 'all' in each
    found = next
  }
  return { value: isMany ? found : found[0], missing: null }
}

function take(value: unknown, wanted: Step): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  if ('all' in wanted) return Array.isArray(value) ? value : Object.values(value)
  if ('index' in wanted) return Array.isArray(value) && wanted.index < value.length ? [value[wanted.index]] : []
  return Object.hasOwn(value, wanted.key) && !Array.isArray(value)
    ? [(value as Record<string, unknown>)[wanted.key]]
    : []
}

const writeStep = (each: Step): string => ('key' in each ? `.${each.key}` : 'index' in each ? `[${each.index}]` : '[*]')

function listNames(value: unknown): string[] {
  if (Array.isArray(value)) return value.length === 0 ? [] : [`[0] to [${value.length - 1}]`]
  if (typeof value !== 'object' || value === null) return []
  return Object.keys(value).map((name) => cut(name, 60))
}
