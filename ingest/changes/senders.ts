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
/** A time with its offset, because a time without an offset depends on the clock of the reader. */
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

/**
 * Reads changes that people post from a script or pipeline, one object or a list:
 *
 *   { title, at, resources?: "node:web-1" | ["node:web-1", …], labels?, author?, url?, revision?, environment? }
 *
 * Never throws. A change with equal content, including its time, is a repeat.
 */
export function parseGenericChanges({ bytes }: ChangeDelivery, nowIso: string): ParsedChanges {
  const body = readBody(bytes)
  if (!body.ok) return body
  const items = Array.isArray(body.value) ? body.value : [body.value]
  if (items.length > maxChanges)
    return { ok: false, reason: `the request has ${items.length} changes, and at most ${maxChanges} are accepted` }
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

/** Returns the change; an error text if the object is not a valid change. */
function readChange(item: RawFields, nowIso: string): Change | string {
  for (const name of ['title', 'at', 'author', 'url', 'revision', 'environment'])
    if (Object.hasOwn(item, name) && item[name] !== null && typeof item[name] !== 'string')
      return `"${name}" is ${nameOfShape(item[name])}, not text`
  const text = (name: string): string | null => {
    const value = Object.hasOwn(item, name) ? item[name] : null
    return typeof value === 'string' && value.trim() !== '' ? cleanText(value).trim() : null
  }
  const title = text('title')
  if (title === null) return '"title" is missing: say in one sentence what changed'
  const givenAt = text('at') ?? ''
  const at = rfc3339.test(givenAt) ? momentOf(givenAt) : null
  if (at === null && rfc3339.test(givenAt)) return `"at" is not a valid time (${givenAt}): check its day`
  if (at === null) return '"at" must be the time of the change, in RFC 3339, such as 2026-11-22T03:04:05Z'
  if (isInFuture(Date.parse(at), Date.parse(nowIso)))
    return `"at" is in the future (${at}): report a change when it is made`
  const url = text('url')
  if (url !== null && linkOf(url) === null) return '"url" is not an http or https address, or has credentials'
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
  // Compares labels as texts, because the value of a label may be nested too deeply to be
  // serialized again.
  const said = Object.entries(labels).map(([name, value]) => [name, textOf(value)])
  return toChange(given, sha256(JSON.stringify({ ...given, labels: said })))
}

/** Returns the names of resources; an error text if the value is invalid. */
function readResources(item: RawFields): string[] | string {
  for (const name of ['resource', 'resources']) {
    const given = Object.hasOwn(item, name) ? item[name] : null
    if (given === null || given === undefined) continue
    const names: unknown[] = Array.isArray(given) ? given : [given]
    if (names.length > maxResources)
      return `"${name}" has ${names.length} names, and at most ${maxResources} are accepted`
    const bad = names.findIndex((each) => typeof each !== 'string' || each.trim() === '')
    if (bad >= 0) return `"${name}" has ${nameOfShape(names[bad])} in place of the name or kind:id of a resource`
    return names.map((each) => capChars(cleanText((each as string).trim()), maxNameChars))
  }
  return []
}

/** Returns a header of the request by its name in lower case. */
type ReadHeader = (name: string) => string | undefined

/**
 * A sender of changes, and how its deliveries are authenticated. A new sender needs a file and an
 * entry here.
 */
export type ChangeSender = {
  name: Change['source']
  /** The header that names the event. A delivery with this header is from this sender. */
  eventHeader: string | null
  /** The header with an id that is equal in all repeats of a delivery. */
  keyHeader: string | null
  /**
   * The setting with the secret that authenticates a delivery. If the secret is not set, the
   * sender's deliveries need a token, as alerts do.
   */
  secretSetting: string | null
  /**
   * Whether the sender of this delivery knows the secret. Compares in constant time, before the
   * body is parsed.
   */
  isProven(secret: string, header: ReadHeader, bytes: Uint8Array): boolean
  /** Parses any bytes into changes, or into a reason. Has no side effect and never throws. */
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

/**
 * Finds the sender of a delivery by its headers; `generic` if no sender matches. Null if two
 * senders match.
 */
export function senderOf(header: ReadHeader): ChangeSender | null {
  const claiming = senders.filter(({ eventHeader }) => eventHeader !== null && header(eventHeader) !== undefined)
  if (claiming.length > 1) return null
  return claiming[0] ?? generic
}

/** Compares digests of two texts, so that the duration reveals neither content nor length. */
function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(expected)))
}
