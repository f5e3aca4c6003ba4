import { RRuleTemporal } from 'rrule-temporal'
import { Temporal } from 'temporal-polyfill'
import type { SiteWindow } from '../../domain/site-policy.ts'

/**
 * The times of a window, computed in local time that is written as if it were UTC, where no hour is
 * skipped or repeated. So clock changes are handled in one place, where a moment becomes local
 * time.
 */
export type CompiledWindow = {
  name: string
  timezone: string
  startMs: number
  lengthMs: number
  rule: RRuleTemporal | null
  /** Key that is equal for windows that apply at the same times. */
  key: string
  /**
   * The last computed beginning, and the next one: nothing is computed for moments between them.
   */
  known: { from: number; until: number } | null
}

const allowedParts = ['FREQ', 'INTERVAL', 'BYDAY', 'BYMONTHDAY', 'BYMONTH', 'BYSETPOS', 'COUNT', 'UNTIL', 'WKST']
const frequencies = ['DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY']
const maxLengthMs = 366 * 86_400_000
/** Most days, nearly a century; a window that never begins within these days is refused. */
const maxIterations = 40_000

type WindowFault = { why: string; remedy: string }

/** Returns a compiled window, or what is wrong with it. */
export function compileWindow(name: string, window: SiteWindow): CompiledWindow | WindowFault {
  const { timezone, start, end, rrule } = window
  if (!isTimezone(timezone))
    return { why: `there is no time zone ${timezone}`, remedy: 'use an IANA name, such as Europe/Oslo or UTC' }
  const [startMs, endMs] = [wallMs(start), wallMs(end)]
  if (startMs === null || endMs === null) {
    const bad = startMs === null ? start : end
    return { why: `${bad} is not a valid time`, remedy: 'write it as 2026-12-20T02:00' }
  }
  if (endMs <= startMs)
    return { why: `the window ends (${end}) before it begins (${start})`, remedy: 'give an end after its start' }
  const lengthMs = endMs - startMs
  if (lengthMs > maxLengthMs)
    return { why: 'the window lasts more than a year', remedy: 'a rule without a window always applies' }
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
      why: `its rrule has an invalid part ${wrong.join('=')}`,
      remedy: `use only ${allowedParts.join(', ')}, each with a value`,
    }
  const { FREQ, UNTIL } = Object.fromEntries(parts) as Record<string, string | undefined>
  if (!frequencies.includes(FREQ ?? ''))
    return {
      why: `its rrule has ${FREQ ? `FREQ=${FREQ}` : 'no FREQ'}`,
      remedy: `set FREQ to one of ${frequencies.join(', ')}`,
    }
  if (new Set(parts.map(([part]) => part)).size < parts.length)
    return { why: 'its rrule has a part twice', remedy: 'write each part once' }
  if (UNTIL !== undefined && !/^\d{8}$/.test(UNTIL))
    return {
      why: `its rrule has UNTIL=${UNTIL}`,
      remedy: 'write UNTIL as a day, such as 20271231: the last day on which the window may begin',
    }
  try {
    const dtstart = Temporal.PlainDateTime.from(start).toZonedDateTime('UTC')
    const rule = new RRuleTemporal({ rruleString: rrule, dtstart, maxIterations })
    if (rule.next(new Date(dtstart.epochMilliseconds), true) !== null) return { rule }
  } catch (error) {
    const { message } = error as Error
    if (!/iterations/i.test(message))
      return {
        why: `its rrule cannot be read: ${message.slice(0, 200)}`,
        remedy: 'RFC 5545, section 3.3.10, shows the format',
      }
  }
  return { why: 'its rrule matches no day', remedy: 'no month has such a day: correct BYMONTH, BYMONTHDAY or UNTIL' }
}

/** Whether the window applies at this moment. The cache never changes the answer. */
export function isInWindow(window: CompiledWindow, nowMs: number): boolean {
  const wall = wallClockMs(window.timezone, nowMs)
  const { startMs, lengthMs, rule } = window
  if (rule === null) return wall >= startMs && wall < startMs + lengthMs
  const { known } = window
  if (known === null || wall < known.from || wall >= known.until) window.known = around(rule, wall)
  return wall < (window.known?.from ?? Number.NEGATIVE_INFINITY) + lengthMs
}

/** Whether the window will never apply again. */
export function isOver(window: CompiledWindow, nowMs: number): boolean {
  const wall = wallClockMs(window.timezone, nowMs)
  const { startMs, lengthMs, rule } = window
  if (rule === null) return wall >= startMs + lengthMs
  const { from, until } = around(rule, wall)
  return until === Number.POSITIVE_INFINITY && wall >= from + lengthMs
}

/** Returns the newest beginning and the next one, or the end of time if there is none. */
function around(rule: RRuleTemporal, wall: number): { from: number; until: number } {
  const [last, next] = [rule.previous(new Date(wall), true), rule.next(new Date(wall))]
  return {
    from: last?.epochMilliseconds ?? Number.NEGATIVE_INFINITY,
    until: next?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
  }
}

function isTimezone(timezone: string): boolean {
  try {
    // Refuses an offset such as +02:00, which has no clock changes.
    return /^[A-Za-z]/.test(timezone) && wallClockMs(timezone, 0) !== null
  } catch {
    return false
  }
}

/** Returns the local time of a moment as if it were UTC. */
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

/** Lists, as sentences, the nights of two years in which a clock change shortens the window. */
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

/** Describes a change of local time: the times between are skipped, or occur twice. */
function describeCut(window: CompiledWindow, before: number, after: number): string | null {
  const [low, high] = [Math.min(before, after), Math.max(before, after)]
  const start = beginningBefore(window, high)
  if (start === null) return null
  const end = start + window.lengthMs
  const cuts = (time: number) => time > low && time < high
  const beginsInside = start === low ? after < before && end < high : cuts(start)
  if (!beginsInside && !cuts(end)) return null
  const night = `on ${clock(low).slice(0, 10)} the clocks change from ${clock(before).slice(11)} to ${clock(after).slice(11)}`
  if (after < before) return `${night}: the part of the window in these hours happens twice`
  if (start >= low && end <= high) return `${night}: the window does not apply that night`
  return cuts(start)
    ? `${night}: the window begins at ${clock(high).slice(11)}`
    : `${night}: the window ends at ${clock(low).slice(11)}`
}

function beginningBefore({ startMs, lengthMs, rule }: CompiledWindow, wall: number): number | null {
  if (rule === null) return startMs < wall && startMs + lengthMs > wall - 86_400_000 ? startMs : null
  return rule.previous(new Date(wall), false)?.epochMilliseconds ?? null
}

const clock = (wall: number): string => new Date(wall).toISOString().slice(0, 16)
