/** Hours of a day in one time zone. If `from` is later than `to`, the hours include midnight. */
export type Hours = { from: string; to: string; zone: string }

/**
 * Whether a zone is given by name, such as Europe/Oslo. An offset such as +01:00 would be wrong for
 * half of the year.
 */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}

const hoursForm = /^((?:[01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d)$/

/**
 * Parses hours from `22:00-07:00` and `Europe/Oslo`. Returns null if the text contains no hours,
 * and an error text if the hours are invalid.
 */
export function readHours(range: string, zone: string): Hours | string | null {
  const [, from, to] = hoursForm.exec(range) ?? []
  if (from === undefined || to === undefined) return null
  if (!isTimeZone(zone)) return `has no time zone after its hours: ${from}-${to} Europe/Oslo`
  return from === to ? 'ends when it begins, so it is empty' : { from, to, zone }
}

/** Whether the time `at` is within the hours, by the clock of their zone. */
export function isWithin({ from, to, zone }: Hours, at: string): boolean {
  const now = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(new Date(at))
  return from < to ? now >= from && now < to : now >= from || now < to
}

/**
 * Returns the last time, at or before `at`, when clocks in the zone showed `time`. If the clocks
 * skipped `time`, returns when they would have shown it. If they showed `time` twice, returns
 * either time.
 */
export function lastTimeOf(time: string, zone: string, at: string): string {
  const now = Math.floor(Date.parse(at) / minute) * minute
  const wall = wallClockMs(zone, now)
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  const today = Math.floor(wall / day) * day + hours * hour + minutes * minute
  const wanted = today > wall ? today - day : today
  const guess = now - (wall - wanted)
  const moment = guess + wanted - wallClockMs(zone, guess)
  return new Date(Math.min(moment, now)).toISOString()
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Returns the local time of the zone as if it were UTC. */
function wallClockMs(zone: string, ms: number): number {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    ...({ year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const),
    hourCycle: 'h23',
  }).formatToParts(ms)
  const part = (name: string) => Number(parts.find(({ type }) => type === name)?.value)
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'))
}
