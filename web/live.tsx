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
 * The browser reconnects and says where it was; only a refusal ends a stream, and then a new one is
 * opened.
 */
const reopenMs = 5_000
/**
 * The server speaks every 15 s. After two missed times the stream is lost, whatever its connection
 * says.
 */
const maxSilenceMs = 35_000
const lookEveryMs = 1_000

/**
 * The one stream of this tab. Every page listens to it; after a long absence a page reads fresh
 * answers, not old rows.
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
        // A new stream begins now, and earlier answers may be older. Later ones go on from its
        // first place.
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

  const [live] = useState(() => (listener: Listener) => {
    listeners.current.add(listener)
    return () => void listeners.current.delete(listener)
  })
  const [hear] = useState(() => (hearer: (live: LiveAnswer) => void) => {
    hearers.current.add(hearer)
    return () => void hearers.current.delete(hearer)
  })
  return <LiveContext value={{ state, listen: live, hear }}>{children}</LiveContext>
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

/** A worker says every second how far an answer is: what is older than this is over. */
const silentMs = 5_000

/** What the model of this incident writes just now; null where it writes nothing. */
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
