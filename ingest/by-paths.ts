import { type Alert, maxWordChars, type ParsedAlerts } from '../domain/alert.ts'
import type { Door } from './doors.ts'
import {
  capChars,
  capFields,
  cleanText,
  fingerprintOf,
  identityOf,
  isFields,
  linkOf,
  maxAnnotationBytes,
  maxLabelBytes,
  maxNameChars,
  maxTitleChars,
  nameObject,
  nameOfShape,
  type RawFields,
  readBody,
  severityOf,
  spokenText,
  timesOf,
} from './fields.ts'
import { type SiteWords, stateOf } from './state-words.ts'

/** Returns the value at a path of fields and list positions, without fields of the prototype. */
export function valueAt(root: unknown, path: string): unknown {
  let value = root
  for (const name of path.split('.')) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return undefined
    value = (value as RawFields)[name]
  }
  return value
}

type PathReader = (places: readonly string[]) => string | null

/** Returns a reader that takes the value of the first place that has a value. */
function readerOf(item: RawFields, isBlank?: RegExp): PathReader {
  const at = (path: string): string | null => {
    const text = spokenText(valueAt(item, path))
    return text === null || isBlank?.test(text.trim()) ? null : text
  }
  const read = (place: string): string | null => {
    if (/^[\w.-]+$/.test(place)) return at(place)
    const parts = place.split(/\{([\w.-]+)\}/).map((part, index) => (index % 2 === 0 ? part : at(part)))
    return parts.includes(null) ? null : parts.join('')
  }
  return (places) => {
    for (const place of places) {
      const text = read(place)
      if (text !== null) return text
    }
    return null
  }
}

/**
 * Reads the request body of a sender in the table `doors`. Returns one alert, or why the body
 * reports no alert, or why the body is not from this sender. Never throws.
 */
export function parseByPaths(
  source: string,
  door: Door,
  bytes: Uint8Array,
  { nowIso, site }: { nowIso: string; site: SiteWords },
): ParsedAlerts {
  const body = readBody(bytes)
  if (!body.ok) return body
  if (!isFields(body.value))
    return { ok: false, reason: `the request body is ${nameOfShape(body.value)}, not an object` }
  const item = unwrap(body.value, door)
  if ('ignored' in item) return { ok: true, alerts: [], ignored: item.ignored }
  if ('reason' in item) return { ok: false, reason: item.reason }
  const lacks = door.marks.filter((mark) => valueAt(item.fields, mark) === undefined)
  if (lacks.length > 0)
    return { ok: false, reason: `the request has no ${lacks.map((mark) => `"${mark}"`).join(', ')}` }
  const read = readerOf(item.fields, door.isBlank)
  for (const { at, is, else: ignored } of door.only ?? []) {
    const word = read([at])
    if (word !== null && !is.test(word)) return { ok: true, alerts: [], ignored }
  }
  if (read(door.name) === null)
    return { ok: false, reason: `the request has none of these fields: ${door.name.join(', ')}` }
  return { ok: true, alerts: [readItem(source, door, item.fields, { read, nowIso, site })] }
}

/** Removes the wrapping around an alert, or returns why there is no alert in it. */
export function unwrap(
  body: RawFields,
  { wrapped }: Pick<Door, 'wrapped'>,
): { fields: RawFields } | { ignored: string } | { reason: string } {
  const kind = wrapped && Object.hasOwn(body, wrapped.kind) ? body[wrapped.kind] : undefined
  if (!wrapped || typeof kind !== 'string') return { fields: body }
  if (kind !== wrapped.is)
    return { ignored: `the message is a ${capChars(cleanText(kind), maxWordChars)} and reports no alert` }
  const inner = readBody(Buffer.from(spokenText(body[wrapped.in]) ?? ''))
  if (inner.ok && isFields(inner.value)) return { fields: inner.value }
  return { reason: `the field "${wrapped.in}" is not a JSON object` }
}

function readItem(
  source: string,
  door: Door,
  item: RawFields,
  { read, nowIso, site }: { read: PathReader; nowIso: string; site: SiteWords },
): Alert {
  const rawLabels = readLabels(door, item, read)
  const description = read(door.description)
  const labels = capFields('labels', rawLabels, maxLabelBytes)
  const annotations = capFields('annotations', { ...(description !== null && { description }) }, maxAnnotationBytes)
  const capped = [...labels.capped, ...annotations.capped]

  const rawName = read(door.name) ?? 'unknown'
  const name = capChars(rawName, maxNameChars)
  if (name !== rawName) capped.push('name')
  const rawTitle = read(door.title) ?? name
  const title = nameObject(capChars(rawTitle, maxTitleChars), rawLabels)
  if (rawTitle.length > maxTitleChars) capped.push('title')

  const state = readState(door, read(door.state.at), site)
  const identity = read(door.identity)
  return {
    source,
    fingerprint: identity ? identityOf(identity) : fingerprintOf(rawLabels, rawName, rawTitle),
    ...state,
    name,
    ...severityOf(read(door.severity) ?? spokenText(rawLabels.severity), door.severities),
    title,
    labels: labels.fields,
    annotations: annotations.fields,
    ...timesOf(readTimes(door, read, state.status), state.status, nowIso),
    links: { generator: linkOf(read(door.link)), external: null, runbook: null },
    groupKey: null,
    truncatedAlerts: 0,
    cappedFields: capped,
  }
}

function readState({ state }: Door, word: string | null, site: SiteWords): ReturnType<typeof stateOf> {
  if ('sender' in state) return stateOf(word, { sender: state.sender }, site)
  return { status: word !== null && state.ends.includes(word.trim().toLowerCase()) ? 'resolved' : 'firing' }
}

/**
 * Reads begin and end of an alert. Ignores the begin of a resolved alert if begin and end are read
 * from one place, because that time is rarely the begin.
 */
function readTimes(
  { startsAt, endsAt }: Door,
  read: PathReader,
  status: Alert['status'],
): { startsAt: string | null; endsAt: string | null } {
  const isSame = startsAt.join() === endsAt.join()
  const start = status === 'resolved' && isSame ? null : read(startsAt)
  return { startsAt: toRfc3339(start), endsAt: toRfc3339(read(endsAt)) }
}

/**
 * Converts seconds since 1970, an SQL time (in UTC) and an offset without a colon to RFC 3339.
 * Every other text stays unchanged.
 */
function toRfc3339(text: string | null): string | null {
  const given = text?.trim() ?? null
  if (given === null) return null
  if (/^\d{9,10}(\.\d+)?$/.test(given)) return new Date(Number(given) * 1_000).toISOString()
  const sql = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)$/.exec(given)
  if (sql) return `${sql[1]}T${sql[2]}Z`
  return given.replace(/([+-]\d\d)(\d\d)$/, '$1:$2')
}

/** Reads tags as labels. Labels that the table defines override the tags. */
function readLabels({ tags, labels }: Door, item: RawFields, read: PathReader): RawFields {
  const found = new Map<string, string>()
  for (const tag of tags ? tagsIn(valueAt(item, tags.at)) : []) {
    const name = spokenText(tag[tags?.name ?? ''])
    if (!tags || name === null) continue
    const called = tags.called && Object.hasOwn(tags.called, name) ? (tags.called[name] ?? name) : name
    const value = spokenText(tag[tags.value]) ?? 'yes'
    const known = found.get(called)
    found.set(called, known === undefined ? value : `${known}, ${value}`)
  }
  for (const [label, places] of Object.entries(labels)) {
    const value = read(places)
    if (value !== null) found.set(label, value)
  }
  return Object.fromEntries(found)
}

/** Reads a list of objects, or a text that contains a list of objects as JSON. */
function tagsIn(value: unknown): RawFields[] {
  const list = typeof value === 'string' ? readBody(Buffer.from(value)) : { ok: true as const, value }
  return list.ok && Array.isArray(list.value) ? list.value.filter(isFields) : []
}
