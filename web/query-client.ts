import { QueryCache, QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { ApiProblem } from './api.ts'

/** The stream tells when something changed: nothing is asked again just because a window came to the front. */
export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onSuccess: heard,
    onError: (error) => {
      unanswered(error)
      // The session ended while the page was open: the sign-in is shown in its place, and afterwards the same page again.
      if (error instanceof ApiProblem && error.status === 401) queryClient.setQueryData(['session'], null)
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) =>
        failures < 2 && !(error instanceof ApiProblem && error.status > 0 && error.status < 500),
    },
    // What a person sends is sent now or fails now: it is not kept until a network is back.
    mutations: { networkMode: 'always' },
  },
})

/** Whether the server answers, as all that asks and listens finds out: shown once for the page, over data that stays. */
export type Away = { why: string; asOf: number } | null

const listeners = new Set<() => void>()
let away: Away = null
let heardAt = Date.now()
let isStreaming = false

function set(next: Away): void {
  away = next
  for (const listener of listeners) listener()
}

/** Something came from the server just now. */
export function heard(): void {
  heardAt = Date.now()
  if (away) set(null)
}

/** A question went unanswered. An answer that refuses is an answer. */
export function unanswered(error: unknown): void {
  if (!(error instanceof ApiProblem) || (error.status !== 0 && error.status < 502)) return
  // What the stream still pushes is as of now, whatever else goes unanswered.
  if (!away) set({ why: error.message, asOf: isStreaming ? Date.now() : heardAt })
}

export function streaming(isOpen: boolean): void {
  if (isStreaming) heardAt = Date.now()
  const wasOpen = isStreaming
  isStreaming = isOpen
  if (isOpen) heard()
  else if (wasOpen && !away) set({ why: 'The server does not answer.', asOf: heardAt })
}

export function useAway(): Away {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => away,
  )
}
