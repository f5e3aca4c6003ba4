import type { Change } from '../../domain/change.ts'
import { sha256 } from '../../domain/digest.ts'
import { isInFuture } from '../../domain/occurrence.ts'
import {
  capChars,
  capFields,
  cleanText,
  isFields,
  linkOf,
  maxLabelBytes,
  maxNameChars,
  maxTitleChars,
  momentOf,
  type RawFields,
} from '../fields.ts'

/** A delivery: the raw bytes of the request, and facts from its headers. */
export type ChangeDelivery = {
  bytes: Uint8Array
  /** The event, from the sender's header. */
  event: string | null
  /** The sender's id of this delivery, if all repeats of the delivery have this id. */
  key: string | null
}

/** Returns an own property that is an object, or an empty object. */
export function objectIn(fields: RawFields, name: string): RawFields {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  return isFields(value) ? value : {}
}

/** Returns an own property that is a non-empty text, on one line; otherwise null. */
export function wordIn(fields: RawFields, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (typeof value !== 'string') return null
  const text = cleanText(value).trim()
  return text === '' ? null : capChars(text, maxNameChars)
}

/** Returns the first line of a text, such as of a commit message. */
export function firstLineIn(fields: RawFields, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  const line = typeof value === 'string' ? cleanText(value).trim().split(/\r?\n/, 1)[0] : undefined
  return line ? capChars(line.trim(), maxTitleChars) : null
}

/**
 * Returns the sender's time. If this time is unreadable or in the future, returns the time of
 * receipt.
 */
export function pastMoment(value: unknown, nowIso: string): string {
  const given = typeof value === 'number' ? new Date(value * 1000) : null
  const moment = given && !Number.isNaN(given.getTime()) ? momentOf(given.toISOString()) : momentOf(value)
  return moment !== null && !isInFuture(Date.parse(moment), Date.parse(nowIso)) ? moment : nowIso
}

type Given = Pick<Change, 'source' | 'at'> & {
  title: string
  author?: string | null
  url?: unknown
  revision?: string | null
  environment?: string | null
  resources?: string[]
  labels: Record<string, unknown>
}

/** Builds a change from the given parts, with its texts cut to their limits. */
export function toChange(given: Given, delivery: string): Change {
  const cap = (text: string | null | undefined): string | null => (text ? capChars(text, maxNameChars) : null)
  return {
    source: given.source,
    delivery,
    at: given.at,
    title: capChars(given.title, maxTitleChars),
    author: cap(given.author),
    url: linkOf(given.url),
    revision: cap(given.revision),
    environment: cap(given.environment),
    resources: given.resources ?? [],
    labels: capFields('labels', given.labels, maxLabelBytes).fields,
  }
}

/**
 * Identifies a delivery by the sender's id if this id is authenticated. Otherwise identifies the
 * delivery by its content, so that equal content under another id is a repeat.
 */
export function deliveryOf({ bytes, event, key }: ChangeDelivery): string {
  if (key !== null) return `key:${sha256(key)}`
  return sha256(Buffer.concat([Buffer.from(`${event ?? ''}\n`), bytes]))
}
