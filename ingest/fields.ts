import { type Alert, maxWordChars } from '../domain/alert.ts'
import { sha256 } from '../domain/digest.ts'
import { parseTime } from '../domain/format.ts'
import type { Severity } from '../domain/incident.ts'
import { isInFuture } from '../domain/occurrence.ts'

export const maxNameChars = 200
export const maxTitleChars = 300
export const maxLabelBytes = 1_024
export const maxAnnotationBytes = 4_096
const maxFields = 64

/** Labels that route an alert. They are kept first when the number of labels is limited. */
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

/**
 * Cleans a text for PostgreSQL: U+0000 and lone surrogates become U+FFFD. Control and bidi
 * characters are kept.
 */
export function cleanText(text: string): string {
  return text.replaceAll('\u0000', '\uFFFD').toWellFormed()
}

/** Cuts a text to `maxChars` code points. A cut text ends in `…`. */
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

/** Cuts a text to `maxBytes` bytes of UTF-8, never within a code point. A cut text ends in `…`. */
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

/**
 * Converts the value of a label to text, because senders also put numbers, booleans and objects
 * there. Null if the value is absent.
 */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (value === null || value === undefined) return null
  try {
    return cleanText(JSON.stringify(value))
  } catch {
    // Replaces a value that is nested too deeply for the stack, which no real sender sends.
    return '[unreadable]'
  }
}

/** Returns the value as text, or null if the text is blank. */
export function spokenText(value: unknown): string | null {
  const text = textOf(value)
  return text !== null && text.trim() !== '' ? text : null
}

/** Returns the text of an own property, or null. Never reads a property from the prototype. */
export function fieldText(fields: RawFields, name: string): string | null {
  return Object.hasOwn(fields, name) ? spokenText(fields[name]) : null
}

type CappedFields = { fields: Record<string, string>; capped: string[] }

/**
 * Limits labels or annotations to 64, and each value to `maxValueBytes`. `capped` names labels and
 * annotations that were cut or left out, in at most 65 entries. A key such as `__proto__` is
 * treated as data.
 */
export function capFields(kind: 'labels' | 'annotations', source: RawFields, maxValueBytes: number): CappedFields {
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

/** A JSON object as it was received. Untrusted. */
export type RawFields = Record<string, unknown>

type ReadBody = { ok: true; value: unknown } | { ok: false; reason: string }

const decoder = new TextDecoder('utf-8')

/**
 * Parses bytes as JSON. Never throws. Invalid UTF-8 becomes U+FFFD, because a partly readable alert
 * is better than none.
 */
export function readBody(bytes: Uint8Array): ReadBody {
  if (bytes.byteLength === 0) return { ok: false, reason: 'the request body is empty' }
  try {
    return { ok: true, value: JSON.parse(decoder.decode(bytes)) }
  } catch {
    return { ok: false, reason: 'the request body is not JSON' }
  }
}

export function isFields(value: unknown): value is RawFields {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** Names the type of a value for an error message: `a string`, `an array`, `missing`. */
export function nameOfShape(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

const maxLinkChars = 2_000

/** Returns an http(s) address in normal form, or null. No other scheme becomes a link. */
export function linkOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > maxLinkChars) return null
  const url = URL.parse(value)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  // Refuses user and password: `https://runbooks.example.com@evil.example` looks like an address of
  // another host, and no password belongs on a page.
  if (url.username !== '' || url.password !== '') return null
  return url.href.length <= maxLinkChars ? url.href : null
}

/**
 * Returns why the end of an alert proves nothing, from Grafana's annotations: the rule got an
 * error, got no data, or was not evaluated. An Alertmanager passes these annotations on.
 */
export function endReasonOf(status: Alert['status'], annotations: RawFields): Pick<Alert, 'endReason'> {
  const reason = status === 'resolved' ? fieldText(annotations, 'grafana_state_reason')?.trim() : undefined
  return reason ? { endReason: capChars(reason, maxWordChars) } : {}
}

const firstMs = Date.UTC(1971, 0, 1)
const lastMs = Date.UTC(9000, 0, 1)

/**
 * Parses a time of RFC 3339 and returns it in UTC. Null for Go's zero time (year 1) and for
 * impossible days.
 */
export function momentOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > 64) return null
  const ms = parseTime(value)
  return ms >= firstMs && ms <= lastMs ? new Date(ms).toISOString() : null
}

const accepted = 'write a time in RFC 3339, such as 2026-11-22T03:04:05Z, at most five minutes ahead'

/**
 * Reads the times of an alert. An absent, unreadable or future time becomes the time of receipt,
 * and `timeNotes` reports the change. An end before the start is kept, because it ends nothing.
 */
export function timesOf(
  given: { startsAt: unknown; endsAt: unknown },
  status: Alert['status'],
  nowIso: string,
): Pick<Alert, 'startsAt' | 'startGiven' | 'endsAt' | 'timeNotes'> {
  const timeNotes: string[] = []
  const read = (name: string, value: unknown): string | null => {
    if (value === undefined || value === null || value === '') return null
    const moment = momentOf(value)
    if (moment !== null && !isInFuture(Date.parse(moment), Date.parse(nowIso))) return moment
    const problem = moment === null ? 'cannot be read' : `is in the future (${moment})`
    timeNotes.push(`${name} ${problem}: the time of receipt is used; ${accepted}`)
    return null
  }
  const startsAt = read('startsAt', given.startsAt)
  // Ignores `endsAt` while an alert fires: Alertmanager then sends year 1, or the time when
  // Prometheus would consider the alert ended.
  const endsAt = status === 'resolved' ? (read('endsAt', given.endsAt) ?? nowIso) : null
  if (startsAt !== null && endsAt !== null && endsAt < startsAt) {
    timeNotes.push(`endsAt ${endsAt} is before startsAt ${startsAt}, so the end is ignored`)
  }
  return { startsAt: startsAt ?? nowIso, startGiven: startsAt !== null, endsAt, timeNotes }
}

/** Labels that name the object of an alert, the most precise first. */
const objectLabels = [
  ...['vm', 'pod', 'deployment', 'statefulset', 'daemonset', 'job_name', 'cronjob', 'persistentvolumeclaim'],
  ...['node', 'nodename', 'host', 'hostname', 'instance', 'shard', 'tenant', 'namespace', 'cluster'],
]
const ofNamespace = /^(pod|deployment|statefulset|daemonset|job_name|cronjob|persistentvolumeclaim)$/

/**
 * Labels in which exporters name a systemd unit: `name` comes from node exporter, `unit` and
 * `systemd_unit` from collectors of processes and logs.
 */
const unitLabels = ['name', 'unit', 'systemd_unit']
const unitForm = /^[^\s/]+\.(service|socket|timer|mount|automount|swap|target|path|slice|scope|device)$/

/** Returns the systemd unit of the alert if the title does not name it. */
function unnamedUnit(text: string, labels: RawFields): string | null {
  const unit = unitLabels.flatMap((label) => fieldText(labels, label) ?? []).find((value) => unitForm.test(value))
  if (unit === undefined) return null
  const plain = unit.replace(/\.[a-z]+$/, '').toLowerCase()
  return text.includes(unit.toLowerCase()) || text.split(/[^a-z0-9_.@-]+/).includes(plain) ? null : unit
}

/** Adds the most precise label to a title that contains no label's value. */
export function nameObject(title: string, labels: RawFields): string {
  const named = objectLabels.flatMap((label) => {
    const value = fieldText(labels, label)
    const isExporter = label === 'pod' && /exporter|kube-state-metrics/.test(value ?? '')
    return value === null || isExporter ? [] : [{ label, value }]
  })
  const text = title.toLowerCase()
  const isNamed = named.some(({ value }) => text.includes(value.replace(/:\d+$/, '').toLowerCase()))
  const [object] = named
  const unit = unnamedUnit(text, labels)
  const place = !object || isNamed ? null : withNamespace(object, labels)
  if (unit === null && place === null) return title
  const name = unit === null || place === null ? (unit ?? place ?? '') : `${capChars(unit, 60)} on ${place}`
  return `${capChars(title, maxTitleChars - 110)} (${capChars(name, 100)})`
}

function withNamespace({ label, value }: { label: string; value: string }, labels: RawFields): string {
  const space = ofNamespace.test(label) ? fieldText(labels, 'namespace') : null
  return space === null ? value : `${space}/${value}`
}

export type SeverityTable = ReadonlyMap<string, Severity>

/** Builds a table of severities from words: `{ critical: 'error fatal …' }`. */
export function severityTable(words: Record<Severity, string>): SeverityTable {
  const table = new Map<string, Severity>()
  for (const [severity, names] of Object.entries(words)) {
    for (const name of names.split(' ')) table.set(name, severity as Severity)
  }
  return table
}

type JudgedSeverity = { severity: Severity; severitySource: 'alert' | 'default'; severityWord: string | null }

/**
 * Maps the severity of a sender. An unknown word becomes a warning and is marked as a default.
 * (With `info`, which many tools choose, pages would be lost.)
 */
export function severityOf(word: string | null, table: SeverityTable): JudgedSeverity {
  const known = word === null ? undefined : table.get(word.trim().toLowerCase())
  return {
    severity: known ?? 'warning',
    severitySource: known ? 'alert' : 'default',
    severityWord: word === null ? null : capChars(word, maxWordChars),
  }
}

const maxIdentityChars = 200

/**
 * Computes a fingerprint of labels, 16 hex digits, independent of their order. Uses the uncut
 * labels, so that two long labels stay distinct.
 */
export function fingerprintOf(labels: RawFields, ...rest: (string | null)[]): string {
  const pairs = Object.keys(labels)
    .sort()
    .map((name) => [name, textOf(labels[name])])
  return sha256(JSON.stringify([pairs, ...rest])).slice(0, 16)
}

/**
 * Returns the sender's identity for an alert. Hashes an identity that is too long, so that two
 * alerts never merge.
 */
export function identityOf(text: string): string {
  const clean = cleanText(text)
  return clean.length <= maxIdentityChars ? clean : `sha256:${sha256(clean)}`
}
