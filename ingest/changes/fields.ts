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

/** What came in: the bytes as they came, and what the headers say about them. */
export type ChangeDelivery = {
  bytes: Uint8Array
  /** Which event it is, by its sender's header. */
  event: string | null
  /** The sender's own name of this delivery, where one is the same for every repeat. */
  key: string | null
}

/** An own field that is an object, or an empty one: nothing that a prototype lends is ever read. */
export function objectIn(fields: RawFields, name: string): RawFields {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  return isFields(value) ? value : {}
}

/** An own field that is text with something in it, on one line; else null. */
export function wordIn(fields: RawFields, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (typeof value !== 'string') return null
  const text = cleanText(value).trim()
  return text === '' ? null : capChars(text, maxNameChars)
}

/** The first line of a text that may have many, as a commit's message has. */
export function firstLineIn(fields: RawFields, name: string): string | null {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  const line = typeof value === 'string' ? cleanText(value).trim().split(/\r?\n/, 1)[0] : undefined
  return line ? capChars(line.trim(), maxTitleChars) : null
}

/** The sender's moment, unless it is unreadable or ahead: then that of receipt. */
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

/** A change within its bounds. */
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
 * A delivery's identity: its sender's own key where the sender proves itself by it; else its
 * content, so that a repeat under another key is a repeat.
 */
export function deliveryOf({ bytes, event, key }: ChangeDelivery): string {
  if (key !== null) return `key:${sha256(key)}`
  return sha256(Buffer.concat([Buffer.from(`${event ?? ''}\n`), bytes]))
}
