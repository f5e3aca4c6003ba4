import type { Fields } from './body.ts'

export const maxNameChars = 200
export const maxTitleChars = 300
export const maxLabelBytes = 1_024
export const maxAnnotationBytes = 4_096
const maxFields = 64
export const maxAlerts = 1_000

/** Routing reads these after the cap, so a crowd of other labels must not push them out. */
const keptFirst = [
  'alertname',
  'severity',
  'incident_type',
  'region',
  'shard',
  'node',
  'tenant',
  'host',
  'vm',
  'instance',
  'summary',
  'description',
  'runbook_url',
]

/** Text that PostgreSQL can hold: U+0000 and lone surrogates become U+FFFD. Control and bidi characters stay: they are data. */
export function cleanText(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD').toWellFormed()
}

/** At most `maxChars` code points; what was cut ends in `…`. */
export function capChars(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  let end = 0
  let chars = 0
  let endOfKept = 0
  for (const char of text) {
    if (chars === maxChars) return `${text.slice(0, endOfKept)}…`
    end += char.length
    chars += 1
    if (chars === maxChars - 1) endOfKept = end
  }
  return text
}

/** At most `maxBytes` bytes of UTF-8, never half a code point; what was cut ends in `…`. */
function capBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text
  const room = maxBytes - Buffer.byteLength('…')
  let bytes = 0
  let end = 0
  for (const char of text) {
    const size = Buffer.byteLength(char)
    if (bytes + size > room) break
    bytes += size
    end += char.length
  }
  return `${text.slice(0, end)}…`
}

/** A label's value as text. Senders put numbers, booleans and whole objects where text belongs; null means absent. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null || value === undefined) return null
  try {
    return cleanText(JSON.stringify(value))
  } catch {
    // Nested deeper than the stack: no sender means that.
    return '[unreadable]'
  }
}

/** Text that says something, or null. */
function spokenText(value: unknown): string | null {
  const text = textOf(value)
  return text !== null && text.trim() !== '' ? text : null
}

/** Text of an own field, or null: nothing that a prototype lends is ever read. */
export function fieldText(fields: Fields, name: string): string | null {
  return Object.hasOwn(fields, name) ? spokenText(fields[name]) : null
}

export type Capped = { fields: Record<string, string>; capped: string[] }

/**
 * Labels or annotations within bounds: at most 64, each value at most `maxValueBytes`. `capped` names what was shortened or
 * left out, itself at most 65 entries long. A key such as `__proto__` is data like any other.
 */
export function capFields(kind: 'labels' | 'annotations', source: Fields, maxValueBytes: number): Capped {
  const names = Object.keys(source).sort((a, b) => rank(a) - rank(b))
  const fields: Record<string, string> = {}
  const capped: string[] = []
  let count = 0
  for (const name of names) {
    const text = textOf(source[name])
    if (text === null) continue
    const key = capChars(cleanText(name), maxNameChars)
    if (count === maxFields || Object.hasOwn(fields, key)) {
      capped.push(`${kind}.${key}`)
      continue
    }
    const value = capBytes(text, maxValueBytes)
    if (value !== text || key !== name) capped.push(`${kind}.${key}`)
    Object.defineProperty(fields, key, { value, enumerable: true, configurable: true, writable: true })
    count += 1
  }
  const rest = capped.length - maxFields
  return { fields, capped: rest > 0 ? [...capped.slice(0, maxFields), `${kind}: ${rest} more`] : capped }
}

function rank(name: string): number {
  const place = keptFirst.indexOf(name)
  return place === -1 ? keptFirst.length : place
}
