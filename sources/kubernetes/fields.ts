import { inertText } from '../../domain/inert-text.ts'
import { cleanse } from '../../safety/redact.ts'

/** Reads fields of objects that may lie: what has another type than it should is not there. */

export type Fields = Readonly<Record<string, unknown>>

const none: Fields = {}

export const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : none

/** What stands under a stranger's word: `constructor` is a word like any other. */
export const ownOf = <T>(of: Readonly<Record<string, T>>, word: string): T | undefined =>
  Object.hasOwn(of, word) ? of[word] : undefined

const maxItems = 2_000

export const listOf = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? value.slice(0, maxItems).map(fieldsOf) : []

const maxNameCharacters = 253

/**
 * A name or other word of the API: printable, without blanks, within a name's length. Empty for any
 * other.
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
 * A stranger's sentence on one line, without secrets: programs' and registries' words hold
 * addresses, and these passwords.
 */
export function sentenceOf(value: unknown, maxCharacters: number): string {
  if (typeof value !== 'string' || value === '') return ''
  // Cut before and after the search: a message may be a megabyte. Invisible parts go first, or they
  // would hide a word.
  return inertText(cleanse(value.slice(0, Math.max(8_000, maxCharacters * 4))), maxCharacters)
}

/** A long text by beginning and end: an error's subject stands first, and its kind last. */
export function cutInside(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const end = Math.floor(maxCharacters / 2)
  return `${text.slice(0, maxCharacters - end - 1)}…${text.slice(-end)}`.toWellFormed()
}

export const toIso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
