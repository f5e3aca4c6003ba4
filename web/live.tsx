import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import type { EventKind, IncidentEvent } from '../domain/event.ts'
import { queryClient, streaming } from './api.ts'
import { kinds } from './marks.tsx'

type Listener = (event: IncidentEvent) => void
/** `opening`: never connected yet. */
type Live = { state: 'opening' | 'live' | 'lost'; listen(listener: Listener): () => void }

const LiveContext = createContext<Live | null>(null)
/** The browser reconnects by itself and says where it was; only a refusal ends a stream, and then a new one is opened. */
const reopenMs = 5_000

/**
 * The one stream of this tab. Every page listens to it; after a long absence a page reads fresh answers rather than old
 * rows.
 */
export function LiveProvider({ children }: { children: ReactNode }) {
  const [state, setState] = useState<Live['state']>('opening')
  const listeners = useRef(new Set<Listener>())

  useEffect(() => {
    let source: EventSource | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    const open = () => {
      source = new EventSource('/api/v1/stream')
      let hasPlace = false
      source.onopen = () => {
        setState('live')
        streaming(true)
        // A new stream begins now, and what was asked before may be older. Later ones go on from the place it was told at once.
        if (!hasPlace) void queryClient.invalidateQueries()
        hasPlace = true
      }
      source.onerror = () => {
        setState('lost')
        streaming(false)
        if (source?.readyState !== EventSource.CLOSED) return
        timer = setTimeout(open, reopenMs)
      }
      for (const kind of Object.keys(kinds) as EventKind[]) {
        source.addEventListener(kind, ({ data }) => {
          const event = JSON.parse(data) as IncidentEvent
          for (const listener of listeners.current) listener(event)
        })
      }
    }
    open()
    return () => {
      source?.close()
      clearTimeout(timer)
    }
  }, [])

  const [live] = useState(() => (listener: Listener) => {
    listeners.current.add(listener)
    return () => void listeners.current.delete(listener)
  })
  return <LiveContext value={{ state, listen: live }}>{children}</LiveContext>
}

export function useLiveState(): Live['state'] {
  return useContext(LiveContext)?.state ?? 'lost'
}

/** Calls back for every row that is written from now on. */
export function useLive(listener: Listener): void {
  const live = useContext(LiveContext)
  const newest = useRef(listener)
  useEffect(() => {
    newest.current = listener
  })
  const listen = live?.listen
  useEffect(() => listen?.((event) => newest.current(event)), [listen])
}
