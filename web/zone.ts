import { useSyncExternalStore } from 'react'
import type { TimeZone } from '../domain/told-time.ts'

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
