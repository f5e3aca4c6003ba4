import type { AlertLinks } from './alert.ts'
import type { AlertResource } from './alert-resource.ts'
import type { LiveAnswer } from './chat.ts'

/**
 * Formats times, durations, numbers and texts for people. The page and the terminal use the same
 * forms.
 */

/** The time zone in which times are shown. The zone is always named. */
export type TimeZone = 'local' | 'utc'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const two = (value: number) => String(value).padStart(2, '0')

/** Formats a day and time: `2026-11-21 20:05:27 -05:00`; in UTC `2026-11-22 01:05:27 UTC`. */
export function formatMoment(iso: string, zone: TimeZone): string {
  const { at, offset } = toZone(iso, zone)
  return `${formatDay(at)} ${formatTime(at)} ${offset}`
}

/** Formats the time of day, `20:05:27`, for places where day and zone are already shown. */
export function formatTimeOfDay(iso: string, zone: TimeZone): string {
  return formatTime(toZone(iso, zone).at)
}

/** Formats the zone's offset from UTC at the time `iso`: `-05:00`, or `UTC`. */
export function formatOffset(iso: string, zone: TimeZone): string {
  return toZone(iso, zone).offset
}

/** Formats a time of the API, which is in UTC, for messages: `2026-11-21 14:03 UTC`. */
export function formatMinute(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 16)} UTC`
}

function formatDay(at: Date): string {
  return `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`
}

function formatTime(at: Date): string {
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`
}

/**
 * Shifts a time so that its UTC parts are the parts of the zone's local time. Uses the offset at
 * this time, because the offset changes over the year.
 */
function toZone(iso: string, zone: TimeZone): { at: Date; offset: string } {
  const at = new Date(iso)
  const minutes = zone === 'utc' ? 0 : -at.getTimezoneOffset()
  if (minutes === 0) return { at, offset: 'UTC' }
  const size = Math.abs(minutes)
  const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(Math.round(size % 60))}`
  return { at: new Date(at.getTime() + minutes * minute), offset }
}

/**
 * Returns the milliseconds of a time that begins with a date (`2026-11-22T03:04:05Z`), otherwise
 * NaN. An impossible date also gives NaN, while JavaScript reads 30 February as 2 March.
 */
export function parseTime(text: string): number {
  const [, year, month, dayOfMonth] = /^\s*(\d{4})-(\d\d)-(\d\d)(?!\d)/.exec(text) ?? []
  const last = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  return Number(month) <= 12 && Number(dayOfMonth) <= last ? Date.parse(text) : Number.NaN
}

/** Returns the next time at which local clocks show these hours and minutes. */
export function nextTimeOfDay(hours: number, minutes: number, now: Date): Date {
  const next = new Date(now)
  next.setHours(hours, minutes, 0, 0)
  if (next <= now) next.setDate(next.getDate() + 1)
  return next
}

/** Formats a duration in a short form for a column: `42 s`, `7 min`, `3 h 05`, `5 d`. */
export function formatSpan(milliseconds: number): string {
  const ms = Math.max(0, milliseconds)
  const minutes = Math.round(ms / minute)
  if (ms < 2 * minute) return `${Math.round(ms / second)} s`
  if (ms < 2 * hour) return `${minutes} min`
  return ms < 2 * day ? `${Math.floor(minutes / 60)} h ${two(minutes % 60)}` : `${Math.round(ms / day)} d`
}

/** Formats the time since a beginning: `+0:42.3` in the first hour, `+1:02:03` later. */
export function formatElapsed(milliseconds: number): string {
  const tenth = `.${Math.floor((Math.max(0, milliseconds) % second) / 100)}`
  return `+${formatClock(milliseconds)}${milliseconds < hour ? tenth : ''}`
}

/**
 * Formats a setting with its unit: `600 s (10 min)`, `$25`, `400,000 tokens`, `10 turns`. A text
 * that is not a number stays unchanged. The unit is one of `settingUnits`.
 */
export function formatWithUnit(value: number | string, unit: string): string {
  const count = Number(value)
  if (value === '' || !Number.isFinite(count)) return String(value)
  if (unit === '$') return `$${count.toLocaleString('en', { minimumFractionDigits: Number.isInteger(count) ? 0 : 2 })}`
  if (unit !== 's') return `${count.toLocaleString('en')} ${count === 1 ? singular(unit) : unit}`
  const span = count < 120 ? '' : ` (${formatSpan(count * second).replace(/ h 00$/, ' h')})`
  return `${count.toLocaleString('en')} s${span}`
}

function singular(unit: string): string {
  return unit === 'people' ? 'person' : unit.replace(/s$/, '')
}

/** Formats a duration as a clock shows it: `9:58` or `1:02:03`. */
export function formatClock(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / second))
  const hours = Math.floor(seconds / 3_600)
  const minutes = Math.floor((seconds % 3_600) / 60)
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`
}

/** Formats a rounded number: `120,400`. */
export function formatNumber(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** Formats a number of things: `1 migration`, `2 migrations`, `no migration`. */
export function formatCount(count: number, what: string): string {
  return count === 0 ? `no ${what}` : `${count} ${count === 1 ? what : pluralOf(what)}`
}

const pluralOf = (what: string): string =>
  /[^aeiou]y$/.test(what) ? `${what.slice(0, -1)}ies` : /(?:s|x|ch)$/.test(what) ? `${what}es` : `${what}s`

/** Lists names in a sentence, at most eight. */
export function formatList(names: readonly string[], last: 'and' | 'or' = 'and'): string {
  if (names.length > 8) return `${names.slice(0, 8).join(', ')} ${last} ${names.length - 8} more`
  if (names.length < 2) return names.join('')
  return `${names.slice(0, -1).join(', ')} ${last} ${names.at(-1)}`
}

/**
 * Formats the progress of a response of the model: `qwen answers · 14 s · about 310 tokens · turn 3
 * of 10`. The name of the model is untrusted.
 */
export function describeLiveAnswer({ model, state, seconds, tokens, isCounted, turn, maxTurns }: LiveAnswer): string {
  const written = `${isCounted ? '' : 'about '}${formatNumber(tokens)} tokens`
  const parts = [`${model} answers`, formatSpan(seconds * second), state === 'asked' ? 'nothing yet' : written]
  return [...parts, `turn ${turn} of ${maxTurns}`].join(' · ')
}

/**
 * Capitalizes the first letter, but only if the first word consists of letters: `vm-101`,
 * `get_node` and `db.example` are names.
 */
export function capitalize(text: string): string {
  return /^\p{Ll}+(?![^\s,:;.)!?]|[.:]\S)/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text
}

/** Formats a code for people: `awaiting_approval` becomes `awaiting approval`. */
export function withSpaces(word: string): string {
  return word.replaceAll('_', ' ')
}

/**
 * Formats a table as CSV (RFC 4180). A cell that a spreadsheet would run as a formula gets an
 * apostrophe, because a cell may contain untrusted text.
 */
export function formatCsv(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map((cells) => `${cells.map(formatCell).join(',')}\r\n`).join('')
}

function formatCell(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Cuts a text to this length, with an ellipsis at its end. */
export function truncate(text: string, length: number): string {
  return text.length <= length
    ? text
    : `${text
        .slice(0, length - 1)
        .toWellFormed()
        .trimEnd()}…`
}

type ResourceSearch = Pick<AlertResource, 'by' | 'tried' | 'candidates'> & { resource?: AlertResource['resource'] }

/** Describes in one sentence how an alert's resource was found, or why none was found. */
export function formatResourceSearch({ resource, by, tried, candidates }: ResourceSearch): string {
  if (resource && by) return `label ${by} names ${resource.kind}:${resource.id}`
  if (candidates.length > 0) return `ambiguous: ${tried.at(-1)?.name} may be ${candidates.join(' or ')}`
  if (tried.length === 0) return 'no label names a resource'
  const names = tried.map(
    ({ label, name, result }) => `${label}=${name} ${result === 'elsewhere' ? 'is somewhere else' : 'is not known'}`,
  )
  return [...new Set(names)].slice(0, 4).join('; ')
}

const linkWords = [
  ['generator', 'Rule'],
  ['dashboard', 'Dashboard'],
  ['panel', 'Panel'],
  ['silence', 'Silence'],
  ['image', 'Image'],
  ['runbook', 'Runbook'],
  ['external', 'Sender'],
] as const

/** Lists the links of an alert, the most useful first. Leaves out links that are not http(s). */
export function listLinks(links: AlertLinks): { word: string; href: string }[] {
  return linkWords.flatMap(([name, word]) => {
    const href = links[name]
    return typeof href === 'string' && /^https?:\/\//i.test(href) ? [{ word, href }] : []
  })
}
