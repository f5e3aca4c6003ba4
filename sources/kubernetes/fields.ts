import { inertText } from '../../domain/inert-text.ts'
import { cleanse } from '../../safety/redact.ts'

/** Fields of untrusted objects. A value with the wrong type counts as absent. */

export type Fields = Readonly<Record<string, unknown>>

const none: Fields = {}

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : none

/** Returns the object's own value under an untrusted key, which may be `constructor`. */
export const ownOf = <T>(of: Readonly<Record<string, T>>, word: string): T | undefined =>
  Object.hasOwn(of, word) ? of[word] : undefined

const maxItems = 2_000

export const listOf = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? value.slice(0, maxItems).map(fieldsOf) : []

const maxNameCharacters = 253

/**
 * Returns a name or another single word of the API: printable, without blanks, and not longer than
 * a name may be. Empty for any other value.
 */
export const wordOf = (value: unknown): string =>
  typeof value === 'string' && value.length <= maxNameCharacters && /^[\x21-\x7e]+$/.test(value) ? value : ''

export const numberOf = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && Math.abs(value) < 1e15 ? value : 0

export const timeOf = (value: unknown): number | null => {
  const ms = typeof value === 'string' && value.length <= 40 ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? null : ms
}

/**
 * Returns an untrusted sentence on one line, without secrets. Messages of programs and registries
 * contain addresses, which may contain passwords.
 */
export function sentenceOf(value: unknown, maxCharacters: number): string {
  if (typeof value !== 'string' || value === '') return ''
  // Cuts before and after the search for secrets, because a message may be a megabyte. Invisible
  // characters are removed before the search, because they could hide a secret.
  return inertText(cleanse(value.slice(0, Math.max(8_000, maxCharacters * 4))), maxCharacters)
}

/**
 * Cuts a long text in the middle, because an error begins with its subject and ends with its kind.
 */
export function cutInside(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const end = Math.floor(maxCharacters / 2)
  return `${text.slice(0, maxCharacters - end - 1)}…${text.slice(-end)}`.toWellFormed()
}

export const toIso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
