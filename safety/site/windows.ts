import { RRuleTemporal } from 'rrule-temporal'
import { Temporal } from 'temporal-polyfill'
import type { SiteWindow } from '../../domain/site-policy.ts'

/**
 * The time of a window. Reckoned by the clock on the wall, written as if in UTC: no hour is skipped
 * or repeated there, so the meaning of a clock change is decided in one place, where a moment
 * becomes a time on the wall.
 */
export type CompiledWindow = {
  name: string
  timezone: string
  startMs: number
  lengthMs: number
  rule: RRuleTemporal | null
  /** Two windows with one key hold at the same moments. */
  key: string
  /** The last asked beginning, and the next: nothing is computed until then. */
  known: { from: number; until: number } | null
}

const allowedParts = ['FREQ', 'INTERVAL', 'BYDAY', 'BYMONTHDAY', 'BYMONTH', 'BYSETPOS', 'COUNT', 'UNTIL', 'WKST']
const frequencies = ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']
const maxLengthMs = 366 * 86_400_000
/** Days of nearly a century: what does not begin within them is refused when the file is read. */
const maxIterations = 40_000

type WindowFault = { why: string; remedy: string }

/** A window, or what is wrong with it. */
export function compileWindow(name: string, window: SiteWindow): CompiledWindow | WindowFault {
  const { timezone, start, end, rrule } = window
  if (!isTimezone(timezone))
    return { why: `there is no time zone ${timezone}`, remedy: 'write it as the IANA database does: Europe/Oslo, UTC' }
  const [startMs, endMs] = [wallMs(start), wallMs(end)]
  if (startMs === null || endMs === null) {
    const bad = startMs === null ? start : end
    return { why: `${bad} is no time on a day that exists`, remedy: 'write it as 2026-12-20T02:00' }
  }
  if (endMs <= startMs)
    return { why: `it ends (${end}) before it begins (${start})`, remedy: 'give an end after its start' }
  const lengthMs = endMs - startMs
  if (lengthMs > maxLengthMs)
    return { why: 'it lasts more than a year', remedy: 'a rule without a window holds always' }
  const compiled: CompiledWindow = {
    ...{ name, timezone, startMs, lengthMs, rule: null, known: null },
    key: JSON.stringify([timezone, start, end, rrule ?? null]),
  }
  if (rrule === undefined) return compiled
  const rule = compileRule(rrule, start)
  return 'why' in rule ? rule : { ...compiled, rule: rule.rule }
}

function compileRule(rrule: string, start: string): { rule: RRuleTemporal } | WindowFault {
  const parts = rrule.split(';').map((part) => part.split('='))
  const wrong = parts.find(([part, value]) => !allowedParts.includes(part ?? '') || !value)
  if (wrong)
    return {
      why: `its rrule has ${wrong.join('=')}`,
      remedy: `its parts are ${allowedParts.join(', ')}, each with a value`,
    }
  const { FREQ, UNTIL } = Object.fromEntries(parts) as Record<string, string | undefined>
  if (!frequencies.includes(FREQ ?? ''))
    return { why: `its rrule repeats ${FREQ ?? 'without FREQ'}`, remedy: `FREQ is one of ${frequencies.join(', ')}` }
  if (new Set(parts.map(([part]) => part)).size < parts.length)
    return { why: 'its rrule has a part twice', remedy: 'write each part once' }
  if (UNTIL !== undefined && !/^\d{8}$/.test(UNTIL))
    return {
      why: `its rrule has UNTIL=${UNTIL}`,
      remedy: 'UNTIL is a day, as 20271231: the last on which it may begin',
    }
  try {
    const dtstart = Temporal.PlainDateTime.from(start).toZonedDateTime('UTC')
    const rule = new RRuleTemporal({ rruleString: rrule, dtstart, maxIterations })
    if (rule.next(new Date(dtstart.epochMilliseconds), true) !== null) return { rule }
  } catch (error) {
    const { message } = error as Error
    if (!/iterations/i.test(message))
      return { why: `its rrule cannot be read: ${message.slice(0, 200)}`, remedy: 'RFC 5545, 3.3.10 has the form' }
  }
  return { why: 'its rrule never gives a day', remedy: 'no month has such a day: correct BYMONTH, BYMONTHDAY or UNTIL' }
}

/**
 * Whether the window holds at this moment. The same answer for the same moment: what it keeps only
 * saves work.
 */
export function isInWindow(window: CompiledWindow, nowMs: number): boolean {
  const wall = wallClockMs(window.timezone, nowMs)
  const { startMs, lengthMs, rule } = window
  if (rule === null) return wall >= startMs && wall < startMs + lengthMs
  const { known } = window
  if (known === null || wall < known.from || wall >= known.until) window.known = around(rule, wall)
  return wall < (window.known?.from ?? Number.NEGATIVE_INFINITY) + lengthMs
}

/** Will it never hold again? */
export function isOver(window: CompiledWindow, nowMs: number): boolean {
  const wall = wallClockMs(window.timezone, nowMs)
  const { startMs, lengthMs, rule } = window
  if (rule === null) return wall >= startMs + lengthMs
  const { from, until } = around(rule, wall)
  return until === Number.POSITIVE_INFINITY && wall >= from + lengthMs
}

/** The newest beginning and the next one. What no rule gives lies at an end of time. */
function around(rule: RRuleTemporal, wall: number): { from: number; until: number } {
  const [last, next] = [rule.previous(new Date(wall), true), rule.next(new Date(wall))]
  return {
    from: last?.epochMilliseconds ?? Number.NEGATIVE_INFINITY,
    until: next?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
  }
}

function isTimezone(timezone: string): boolean {
  try {
    // An offset such as +02:00 is no place: it has no clock that changes.
    return /^[A-Za-z]/.test(timezone) && wallClockMs(timezone, 0) !== null
  } catch {
    return false
  }
}

/** The clock on the wall at a moment, as if it were that of UTC. */
function wallClockMs(timezone: string, ms: number): number {
  const { offsetNanoseconds } = Temporal.Instant.fromEpochMilliseconds(Math.floor(ms)).toZonedDateTimeISO(timezone)
  return ms + offsetNanoseconds / 1e6
}

function wallMs(text: string): number | null {
  try {
    return Temporal.PlainDateTime.from(text, { overflow: 'reject' }).toZonedDateTime('UTC').epochMilliseconds
  } catch {
    return null
  }
}

/** The nights of the next two years in which a clock change cuts the window, each as a sentence. */
export function clockChangesIn(window: CompiledWindow, nowMs: number): string[] {
  const ends = nowMs + 2 * maxLengthMs
  const found: string[] = []
  let at: Temporal.ZonedDateTime | null = Temporal.Instant.fromEpochMilliseconds(Math.floor(nowMs)).toZonedDateTimeISO(
    window.timezone,
  )
  for (;;) {
    at = at.getTimeZoneTransition('next')
    if (at === null || at.epochMilliseconds > ends) return found
    const before = wallClockMs(window.timezone, at.epochMilliseconds - 1) + 1
    const after = wallClockMs(window.timezone, at.epochMilliseconds)
    const said = describeCut(window, before, after)
    if (said) found.push(said)
  }
}

/** A change from one time on the wall to another: the times between are skipped, or come twice. */
function describeCut(window: CompiledWindow, before: number, after: number): string | null {
  const [low, high] = [Math.min(before, after), Math.max(before, after)]
  const start = beginningBefore(window, high)
  if (start === null) return null
  const end = start + window.lengthMs
  const cuts = (time: number) => time > low && time < high
  const beginsInside = start === low ? after < before && end < high : cuts(start)
  if (!beginsInside && !cuts(end)) return null
  const night = `on ${clock(low).slice(0, 10)} the clocks go from ${clock(before).slice(11)} to ${clock(after).slice(11)}`
  if (after < before) return `${night}: what of it lies in these hours comes twice`
  if (start >= low && end <= high) return `${night}: it does not hold that night`
  return cuts(start)
    ? `${night}: it begins at ${clock(high).slice(11)}`
    : `${night}: it ends at ${clock(low).slice(11)}`
}

function beginningBefore({ startMs, lengthMs, rule }: CompiledWindow, wall: number): number | null {
  if (rule === null) return startMs < wall && startMs + lengthMs > wall - 86_400_000 ? startMs : null
  return rule.previous(new Date(wall), false)?.epochMilliseconds ?? null
}

const clock = (wall: number): string => new Date(wall).toISOString().slice(0, 16)
