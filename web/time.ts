const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** `4 s`, `12 min`, `3 h 05`, `2 d`: as short as a person needs it. */
export function span(ms: number): string {
  const positive = Math.max(0, ms)
  if (positive < minute) return `${Math.floor(positive / 1000)} s`
  if (positive < hour) return `${Math.floor(positive / minute)} min`
  if (positive < day)
    return `${Math.floor(positive / hour)} h ${String(Math.floor((positive % hour) / minute)).padStart(2, '0')}`
  return `${Math.floor(positive / day)} d`
}

/** `+0:42.3`, `+1:02:07.0`: how long after the beginning, to a tenth, for a run takes seconds. */
export function offset(ms: number): string {
  return `+${clock(ms)}.${Math.floor((Math.max(0, ms) % 1000) / 100)}`
}

/** `9:58` of a countdown. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const two = (value: number) => String(value).padStart(2, '0')
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}`
}

/** `01:45:40` in UTC, the time of every log. */
export function timeOfDay(iso: string): string {
  return iso.slice(11, 19)
}

/** `2026-11-21 01:45:40 UTC`. */
export function moment(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}
