import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Change, ParsedChanges } from '../../domain/change.ts'
import { sha256 } from '../../domain/digest.ts'
import { isInFuture } from '../../domain/occurrence.ts'
import {
  capChars,
  cleanText,
  isFields,
  linkOf,
  maxNameChars,
  momentOf,
  nameOfShape,
  type RawFields,
  readBody,
  textOf,
} from '../fields.ts'
import { type ChangeDelivery, toChange } from './fields.ts'
import { parseGithub } from './github.ts'
import { parseGitlab } from './gitlab.ts'

const maxChanges = 100
const maxResources = 20
/** With its offset: a time without one is another moment on each clock. */
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

/**
 * Changes that people post from a script or pipeline, one object or a list:
 *
 *   { title, at, resources?: "node:web-1" | ["node:web-1", …], labels?, author?, url?, revision?, environment? }
 *
 * Never throws. A repeat is a change with the same words: each has its moment.
 */
export function parseGenericChanges({ bytes }: ChangeDelivery, nowIso: string): ParsedChanges {
  const body = readBody(bytes)
  if (!body.ok) return body
  const items = Array.isArray(body.value) ? body.value : [body.value]
  if (items.length > maxChanges)
    return { ok: false, reason: `it holds ${items.length} changes and at most ${maxChanges} are taken` }
  const changes: Change[] = []
  for (const [index, item] of items.entries()) {
    const where = Array.isArray(body.value) ? `item ${index}` : 'the body'
    if (!isFields(item)) return { ok: false, reason: `${where} is ${nameOfShape(item)}, not an object` }
    const read = readChange(item, nowIso)
    if (typeof read === 'string') return { ok: false, reason: `${where}: ${read}` }
    changes.push(read)
  }
  return { ok: true, changes, ignored: changes.length === 0 ? 'the list is empty' : null }
}

/** The change, or what is wrong with it. */
function readChange(item: RawFields, nowIso: string): Change | string {
  for (const name of ['title', 'at', 'author', 'url', 'revision', 'environment'])
    if (Object.hasOwn(item, name) && item[name] !== null && typeof item[name] !== 'string')
      return `"${name}" is ${nameOfShape(item[name])}, not text`
  const text = (name: string): string | null => {
    const value = Object.hasOwn(item, name) ? item[name] : null
    return typeof value === 'string' && value.trim() !== '' ? cleanText(value).trim() : null
  }
  const title = text('title')
  if (title === null) return '"title" is missing: say in a sentence what was changed'
  const givenAt = text('at') ?? ''
  const at = rfc3339.test(givenAt) ? momentOf(givenAt) : null
  if (at === null && rfc3339.test(givenAt)) return `"at" is no moment that a calendar has (${givenAt}): look at its day`
  if (at === null) return '"at" has to be the moment of the change, in RFC 3339, as 2026-11-22T03:04:05Z'
  if (isInFuture(Date.parse(at), Date.parse(nowIso)))
    return `"at" lies in the future (${at}): post a change when it is made`
  const url = text('url')
  if (url !== null && linkOf(url) === null) return '"url" is no http or https address without credentials'
  const resources = readResources(item)
  if (typeof resources === 'string') return resources
  const labels = Object.hasOwn(item, 'labels') && item.labels !== null ? item.labels : {}
  if (!isFields(labels)) return `"labels" is ${nameOfShape(labels)}, not an object`
  const given = {
    source: 'generic' as const,
    title,
    at,
    url,
    resources,
    labels,
    author: text('author'),
    revision: text('revision'),
    environment: text('environment'),
  }
  // Labels as texts: a value may be nested deeper than what can be written out again.
  const said = Object.entries(labels).map(([name, value]) => [name, textOf(value)])
  return toChange(given, sha256(JSON.stringify({ ...given, labels: said })))
}

/** Names of resources, or what is wrong with them. */
function readResources(item: RawFields): string[] | string {
  for (const name of ['resource', 'resources']) {
    const given = Object.hasOwn(item, name) ? item[name] : null
    if (given === null || given === undefined) continue
    const names: unknown[] = Array.isArray(given) ? given : [given]
    if (names.length > maxResources) return `"${name}" has ${names.length} names and at most ${maxResources} are taken`
    const bad = names.findIndex((each) => typeof each !== 'string' || each.trim() === '')
    if (bad >= 0) return `"${name}" holds ${nameOfShape(names[bad])} where the name or kind:id of a resource belongs`
    return names.map((each) => capChars(cleanText((each as string).trim()), maxNameChars))
  }
  return []
}

/** Headers of a request, by name in small letters. */
type ReadHeader = (name: string) => string | undefined

/** Senders of changes, and how each proves itself. A new one is a file and an entry here. */
export type ChangeSender = {
  name: Change['source']
  /** The header that names the event. One that has it is this sender's delivery. */
  eventHeader: string | null
  /** The header with a name that every repeat of a delivery has. */
  keyHeader: string | null
  /**
   * The setting with the secret that proves a delivery; without one its deliveries need a token, as
   * alerts do.
   */
  secretSetting: string | null
  /**
   * Whether this delivery was made with the secret. In constant time, before anything in the body
   * is read.
   */
  isProven(secret: string, header: ReadHeader, bytes: Uint8Array): boolean
  /** Pure and total: any bytes give changes or a reason. */
  parse(delivery: ChangeDelivery, nowIso: string): ParsedChanges
}

const generic: ChangeSender = {
  name: 'generic',
  eventHeader: null,
  keyHeader: null,
  secretSetting: null,
  isProven: () => false,
  parse: parseGenericChanges,
}

const senders: readonly ChangeSender[] = [
  {
    name: 'github',
    eventHeader: 'x-github-event',
    keyHeader: null,
    secretSetting: 'change.github_secret',
    isProven: (secret, header, bytes) =>
      isSame(header('x-hub-signature-256') ?? '', `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`),
    parse: parseGithub,
  },
  {
    name: 'gitlab',
    eventHeader: 'x-gitlab-event',
    keyHeader: 'idempotency-key',
    secretSetting: 'change.gitlab_token',
    isProven: (secret, header) => isSame(header('x-gitlab-token') ?? '', secret),
    parse: parseGitlab,
  },
]

/** A delivery's sender by its headers; else `generic`. Null: two senders claim it. */
export function senderOf(header: ReadHeader): ChangeSender | null {
  const claiming = senders.filter(({ eventHeader }) => eventHeader !== null && header(eventHeader) !== undefined)
  if (claiming.length > 1) return null
  return claiming[0] ?? generic
}

/** Compares digests, so that neither content nor length shows in the time it takes. */
function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(expected)))
}
