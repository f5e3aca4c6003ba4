import { useSyncExternalStore } from 'react'
import * as format from '../domain/format.ts'
import { createWatchedValue } from './watched-value.ts'

/** Formats `01:45:40`, in the chosen zone. */
export function formatTimeOfDay(iso: string): string {
  return format.formatTimeOfDay(iso, chosen.get())
}

/** Formats `2026-11-21 20:05:27 -05:00`, in the chosen zone. */
export function formatMoment(iso: string): string {
  return format.formatMoment(iso, chosen.get())
}

/** Formats a time in the time zone of the person and in UTC, the zone of every log. */
export function formatBothZones(iso: string): string {
  return [...new Set([format.formatMoment(iso, 'local'), format.formatMoment(iso, 'utc')])].join(' = ')
}

export const zones: format.TimeZone[] = ['local', 'utc']

const key = 'nightshift.times'
/** The zone of shown times: that of the person, unless they chose UTC in this browser. */
const chosen = createWatchedValue<format.TimeZone>(localStorage.getItem(key) === 'utc' ? 'utc' : 'local')
export const useZone = chosen.use

export function chooseZone(next: format.TimeZone): void {
  chosen.set(next)
  if (next === 'utc') localStorage.setItem(key, next)
  else localStorage.removeItem(key)
}

/** One clock for the complete page, so that ages and countdowns change together. */
const clockListeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function listenToClock(listener: () => void): () => void {
  clockListeners.add(listener)
  // Reads the time, because the clock stood still without a listener, and its last tick may be long
  // ago.
  if (timer === undefined) now = Date.now()
  timer ??= setInterval(() => {
    now = Date.now()
    for (const each of clockListeners) each()
  }, 1_000)
  return () => {
    clockListeners.delete(listener)
    if (clockListeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export function useNow(): number {
  return useSyncExternalStore(listenToClock, () => now)
}
