import { type Hours, isTimeZone, isWithin, lastTimeOf, readHours } from './hours.ts'

/** The hours in which people sleep, and the times of the morning card and of hand-overs. */

/** Conditions under which the morning card is sent. */
export const morningCards = ['news', 'always', 'off'] as const
export type MorningCard = (typeof morningCards)[number]

type Parsed<Value> = { ok: true; value: Value } | { ok: false; reason: string }

const nightUsage = 'must be hours and a time zone, such as 22:00-07:00 Europe/Oslo'

/** Parses the setting `page.night`. */
export function parseNight(text: string): Parsed<Hours> {
  const [range = '', zone = '', ...more] = text.trim().split(/\s+/)
  const hours = more.length === 0 ? readHours(range, zone) : null
  if (hours === null) return { ok: false, reason: nightUsage }
  return typeof hours === 'string' ? { ok: false, reason: hours } : { ok: true, value: hours }
}

/** Times of day in one time zone. */
export type DayTimes = { times: string[]; zone: string }

const timeForm = /^([01]\d|2[0-3]):[0-5]\d$/
const maxTimes = 6
/**
 * Minimum minutes between two hand-overs. They stay apart also in a night that a clock change
 * shortens.
 */
const apartMinutes = 180

/** Parses the setting `hand_over.at`; null for an empty text. */
export function parseHandOverTimes(text: string): Parsed<DayTimes | null> {
  const words = text
    .trim()
    .split(/[\s,]+/)
    .filter(Boolean)
  if (words.length === 0) return { ok: true, value: null }
  const zone = words.at(-1) as string
  if (!isTimeZone(zone))
    return { ok: false, reason: 'has no time zone after its times: write 06:00 14:00 22:00 Europe/Oslo' }
  const times = words.slice(0, -1)
  const wrong = times.find((each) => !timeForm.test(each))
  if (wrong !== undefined)
    return { ok: false, reason: `"${wrong.slice(0, 40)}" is not a time of day: write it as 06:00` }
  if (times.length === 0 || times.length > maxTimes)
    return { ok: false, reason: `must be 1 to ${maxTimes} times, such as 06:00 14:00 22:00 Europe/Oslo` }
  const sorted = [...times].sort()
  const close = sorted.find((time, at) => toMinutes(sorted[(at + 1) % sorted.length] as string, time) < apartMinutes)
  if (sorted.length > 1 && close !== undefined)
    return { ok: false, reason: `has two times within three hours, at ${close}: leave one of them out` }
  return { ok: true, value: { times: sorted, zone } }
}

/** Returns the minutes from `time` to `next`, over midnight if `next` is earlier. */
function toMinutes(next: string, time: string): number {
  const of = (each: string) => Number(each.slice(0, 2)) * 60 + Number(each.slice(3))
  return (of(next) - of(time) + 1_440) % 1_440
}

/** Returns the night that contains the time `at`; null by day. */
export function nightAt(night: Hours, at: string): { since: string } | null {
  return isWithin(night, at) ? { since: lastTimeOf(night.from, night.zone, at) } : null
}

/** Returns the last night that has ended at the time `at`. */
export function lastNight(night: Hours, at: string): { since: string; until: string } {
  const until = lastTimeOf(night.to, night.zone, at)
  return { since: lastTimeOf(night.from, night.zone, until), until }
}

/** Returns the newest of these times of day that has passed at the time `at`. */
export function lastOf({ times, zone }: DayTimes, at: string): string {
  return times
    .map((time) => lastTimeOf(time, zone, at))
    .sort()
    .at(-1) as string
}

/** Adds working days to a date such as 2026-11-29. Saturdays and Sundays do not count. */
export function addWorkingDays(day: string, days: number): string {
  const date = new Date(`${day}T00:00:00Z`)
  for (let left = days; left > 0; ) {
    date.setUTCDate(date.getUTCDate() + 1)
    if (date.getUTCDay() % 6 !== 0) left -= 1
  }
  return date.toISOString().slice(0, 10)
}
