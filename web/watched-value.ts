import { useSyncExternalStore } from 'react'

/** Keeps a value that several components of the page show, and that code outside of them sets. */
export function createWatchedValue<T>(first: T) {
  let value = first
  const listeners = new Set<() => void>()
  const listen = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const get = () => value
  const set = (next: T) => {
    value = next
    for (const listener of listeners) listener()
  }
  return { get, set, use: () => useSyncExternalStore(listen, get) }
}
