import { useSyncExternalStore } from 'react'

/** One clock for the whole page: ages and countdowns tick together. */
const listeners = new Set<() => void>()
let current = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  // Nobody listened until now: the last tick may be long ago.
  if (timer === undefined) current = Date.now()
  timer ??= setInterval(() => {
    current = Date.now()
    for (const each of listeners) each()
  }, 1_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => current)
}
