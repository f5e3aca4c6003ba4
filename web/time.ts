import { useSyncExternalStore } from 'react'
import { type TimeZone, tellMoment, tellTimeOfDay } from '../domain/told-time.ts'

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

/** `01:45:40`, in the zone that was chosen. */
export function timeOfDay(iso: string): string {
  return tellTimeOfDay(iso, zone())
}

/** `2026-11-21 20:05:27 -05:00`, in the zone that was chosen. */
export function moment(iso: string): string {
  return tellMoment(iso, zone())
}

/** The same in the zone of the person and in UTC, the time of every log. */
export function bothMoments(iso: string): string {
  return [...new Set([tellMoment(iso, 'local'), tellMoment(iso, 'utc')])].join(' = ')
}

export const zones: TimeZone[] = ['local', 'utc']

const key = 'nightshift.times'
const listeners = new Set<() => void>()
let chosen: TimeZone = localStorage.getItem(key) === 'utc' ? 'utc' : 'local'

/** In which zone times are shown: the person's own, unless they chose UTC in this browser. */
export function zone(): TimeZone {
  return chosen
}

export function chooseZone(next: TimeZone): void {
  chosen = next
  if (next === 'utc') localStorage.setItem(key, next)
  else localStorage.removeItem(key)
  for (const listener of listeners) listener()
}

export function useZone(): TimeZone {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, zone)
}
