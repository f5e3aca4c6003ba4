import type { z } from 'zod'
import { readLooseJson } from './json.ts'

/** A value in another form than the schema's: as the model wrote it, and as it is read. */
type PlainValue = { field: string; from: unknown; to: unknown }

type Path = readonly PropertyKey[]

const maxPasses = 40
const maxShownCharacters = 200
const absent = Symbol('absent')

/**
 * Converts arguments to the types of their schema if a value's meaning is plain: null or empty text
 * for an optional field is absent, digits are a number, `"true"` is true, JSON in a text is the
 * list or object. Any other value stays.
 */
export function readPlainValues(
  input: z.ZodType,
  given: Record<string, unknown>,
): { arguments: Record<string, unknown>; read: PlainValue[] } {
  let current = given
  const read: PlainValue[] = []
  for (let pass = 0; pass < maxPasses; pass += 1) {
    const issues = input.safeParse(current).error?.issues ?? []
    const fixed = issues.reduce<Reading | null>((found, { path }) => found ?? readAt(input, current, path), null)
    if (!fixed) break
    current = fixed.arguments
    read.push(fixed.read)
  }
  return { arguments: current, read }
}

type Reading = { arguments: Record<string, unknown>; read: PlainValue }

/** Returns the arguments with the first reading of a value that the schema accepts. */
function readAt(input: z.ZodType, given: Record<string, unknown>, path: Path): Reading | null {
  if (path.length === 0) return null
  const from = path.reduce<unknown>((value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key], given)
  for (const to of readingsOf(from)) {
    const next = replaced(given, path, to) as Record<string, unknown>
    // Accepts a reading whose inner fields still have faults, because a later pass corrects these.
    const isTaken = !input.safeParse(next).error?.issues.some((issue) => issue.path.join('\n') === path.join('\n'))
    if (!isTaken) continue
    const shown = typeof from === 'string' ? from.slice(0, maxShownCharacters).toWellFormed() : from
    return { arguments: next, read: { field: path.map(String).join('.'), from: shown, to: to === absent ? null : to } }
  }
  return null
}

function readingsOf(value: unknown): unknown[] {
  if (value === null) return [absent]
  if (typeof value !== 'string') return []
  const text = value.trim()
  if (text === '') return [absent]
  if (/^-?\d{1,15}(?:\.\d{1,9})?$/.test(text)) return [Number(text)]
  if (/^(?:true|false)$/i.test(text)) return [text.toLowerCase() === 'true']
  if (!/^[[{]/.test(text)) return []
  const read = readLooseJson(text, text.length)
  return read.ok ? [read.value] : []
}

function replaced(value: unknown, [key, ...rest]: Path, to: unknown): unknown {
  if (key === undefined) return to
  if (Array.isArray(value)) {
    const list = [...value]
    list[Number(key)] = replaced(list[Number(key)], rest, to)
    return to === absent && rest.length === 0 ? value.filter((_, at) => at !== Number(key)) : list
  }
  const copy = { ...(value as Record<PropertyKey, unknown>) }
  if (to === absent && rest.length === 0) delete copy[key]
  else copy[key] = replaced(copy[key], rest, to)
  return copy
}
