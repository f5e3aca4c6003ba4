import { createContext, type ReactNode, useContext, useEffect, useRef, useState } from 'react'
import type { LiveAnswer } from '../domain/chat.ts'
import type { EventKind, IncidentEvent } from '../domain/event.ts'
import { queryClient, streaming } from './api.ts'
import { kinds } from './marks.tsx'

type Listener = (event: IncidentEvent) => void
/** `opening`: never connected yet. */
type Live = {
  state: 'opening' | 'live' | 'lost'
  listen(listener: Listener): () => void
  hear(listener: (live: LiveAnswer) => void): () => void
}

const LiveContext = createContext<Live | null>(null)
/**
 * Milliseconds until a refused stream is opened again. After other failures the browser connects
 * again at the last position.
 */
const reopenMs = 5_000
/**
 * Milliseconds without an event after which the stream counts as lost, even if its connection is
 * open. The server sends something every 15 s.
 */
const maxSilenceMs = 35_000
const lookEveryMs = 1_000

/**
 * Runs the only stream of this tab, to which every page listens. After a long absence a page reads
 * fresh data, not old rows.
 */
export function LiveProvider({ children }: { children: ReactNode }) {
  const [state, setState] = useState<Live['state']>('opening')
  const listeners = useRef(new Set<Listener>())
  const hearers = useRef(new Set<(live: LiveAnswer) => void>())

  useEffect(() => {
    let source: EventSource | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let heardAt = Date.now()
    const hear = (type: string, listener: (data: string) => void) =>
      source?.addEventListener(type, ({ data }) => {
        heardAt = Date.now()
        listener(data)
      })
    const lose = () => {
      setState('lost')
      streaming(false)
      clearTimeout(timer)
    }
    const open = () => {
      source = new EventSource('/api/v1/stream')
      let hasPlace = false
      heardAt = Date.now()
      source.onopen = () => {
        heardAt = Date.now()
        setState('live')
        streaming(true)
        // A new stream begins now, so that data from before may be older. Later streams continue
        // from its position.
        if (!hasPlace) void queryClient.invalidateQueries()
        hasPlace = true
      }
      source.onerror = () => {
        lose()
        if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, reopenMs)
      }
      hear('heartbeat', () => {})
      hear('model_writing', (data) => {
        const live = JSON.parse(data) as LiveAnswer
        for (const hearer of hearers.current) hearer(live)
      })
      for (const kind of Object.keys(kinds) as EventKind[]) {
        hear(kind, (data) => {
          const event = JSON.parse(data) as IncidentEvent
          for (const listener of listeners.current) listener(event)
        })
      }
    }
    open()
    const looking = setInterval(() => {
      if (source?.readyState !== EventSource.OPEN || Date.now() - heardAt < maxSilenceMs) return
      source.close()
      lose()
      timer = setTimeout(open, reopenMs)
    }, lookEveryMs)
    return () => {
      source?.close()
      clearInterval(looking)
      clearTimeout(timer)
    }
  }, [])

  const [listen] = useState(() => joining(listeners.current))
  const [hear] = useState(() => joining(hearers.current))
  return <LiveContext value={{ state, listen, hear }}>{children}</LiveContext>
}

/** Adds an element to a set. Returns a function that removes it. */
function joining<T>(all: Set<T>) {
  return (each: T) => {
    all.add(each)
    return () => void all.delete(each)
  }
}

export function useLiveState(): Live['state'] {
  return useContext(LiveContext)?.state ?? 'lost'
}

/** Calls `listener` for every row that is written from now on. */
export function useLive(listener: Listener): void {
  const live = useContext(LiveContext)
  const newest = useRef(listener)
  useEffect(() => {
    newest.current = listener
  })
  const listen = live?.listen
  useEffect(() => listen?.((event) => newest.current(event)), [listen])
}

/** Milliseconds after which progress is outdated. A worker reports progress every second. */
const silentMs = 5_000

/** Returns the growing text of this incident's model. Null if there is none. */
export function useLiveAnswer(incidentId: string): LiveAnswer | null {
  const hear = useContext(LiveContext)?.hear
  const [live, setLive] = useState<LiveAnswer | null>(null)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const leave = hear?.((said) => {
      if (said.incidentId !== incidentId) return
      clearTimeout(timer)
      setLive(said.state === 'ended' ? null : said)
      timer = setTimeout(() => setLive(null), silentMs)
    })
    return () => {
      clearTimeout(timer)
      leave?.()
      setLive(null)
    }
  }, [hear, incidentId])
  return live
}
