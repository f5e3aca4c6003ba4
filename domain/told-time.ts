/** Times as people read them, on the page and on the terminal alike: the zone is always said. */
export type TimeZone = 'local' | 'utc'

const two = (value: number) => String(value).padStart(2, '0')

/** `2026-11-21 20:05:27 -05:00`; in UTC, and where the local time is the same, `2026-11-22 01:05:27 UTC`. */
export function tellMoment(iso: string, zone: TimeZone): string {
  const { at, offset } = shifted(iso, zone)
  const day = `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`
  return `${day} ${tellClock(at)} ${offset}`
}

/** `20:05:27`, where the day and the zone are said elsewhere. */
export function tellTimeOfDay(iso: string, zone: TimeZone): string {
  return tellClock(shifted(iso, zone).at)
}

/** `-05:00` as it is now, or `UTC`. */
export function tellOffset(iso: string, zone: TimeZone): string {
  return shifted(iso, zone).offset
}

function tellClock(at: Date): string {
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`
}

/** The moment as a date whose UTC parts are those of the zone: an offset belongs to the moment, for it changes with the season. */
function shifted(iso: string, zone: TimeZone): { at: Date; offset: string } {
  const at = new Date(iso)
  const minutes = zone === 'utc' ? 0 : -at.getTimezoneOffset()
  if (minutes === 0) return { at, offset: 'UTC' }
  const size = Math.abs(minutes)
  const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(Math.round(size % 60))}`
  return { at: new Date(at.getTime() + minutes * 60_000), offset }
}
