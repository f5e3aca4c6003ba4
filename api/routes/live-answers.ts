import type { Db } from '../../db/connect.ts'
import { allIncidents, listenForLiveAnswers } from '../../db/log/live.ts'
import type { LiveAnswer } from '../../domain/chat.ts'

/** After this long without a word its worker is gone. */
const silentMs = 5_000
/** The database is listened to for so long after the last watcher has left. */
const lingerMs = 10_000

type LiveEntry = { incidentId: string; version: number; message: string; atMs: number }

/**
 * Text that models write now: only each incident's newest word, so that a slow watcher gets less
 * and nothing piles up.
 */
export type LiveAnswers = {
  /** Adds a watcher of an incident, or of all. Answers how to remove it. */
  join(incidentId: string | undefined): () => void
  /** Words after this version, for one incident or all. From 0 on: what is written now. */
  after(version: number, incidentId: string | undefined): LiveEntry[]
  /** Grows with every word. */
  version(): number
  /** Calls back at every word, until what it answers is called. */
  listen(listener: () => void): () => void
}

type State = {
  /** How many watch each incident, and all of them. */
  watchers: Map<string, number>
  version: number
  newest: Map<string, LiveEntry>
  listeners: Set<() => void>
  listening: AbortController | null
}

/** Listens to the database while anybody watches. */
export function createLiveAnswers(db: Db, closing: AbortSignal): LiveAnswers {
  const state: State = {
    watchers: new Map<string, number>(),
    version: 0,
    newest: new Map<string, LiveEntry>(),
    listening: null,
    listeners: new Set(),
  }
  return {
    join(incidentId) {
      const watched = incidentId ?? allIncidents
      state.watchers.set(watched, (state.watchers.get(watched) ?? 0) + 1)
      if (state.listening === null && !closing.aborted) {
        const listening = new AbortController()
        state.listening = listening
        const ends = AbortSignal.any([listening.signal, closing])
        void listenForLiveAnswers(
          db,
          (live) => take(state, live),
          ends,
          () => [...state.watchers.keys()],
        )
      }
      return () => {
        const left = (state.watchers.get(watched) ?? 1) - 1
        if (left > 0) state.watchers.set(watched, left)
        else state.watchers.delete(watched)
        if (state.watchers.size === 0) setTimeout(() => leave(state), lingerMs).unref()
      }
    },
    after(version, incidentId) {
      const oldest = performance.now() - silentMs
      return [...state.newest.values()].filter(
        (each) =>
          each.version > version && each.atMs > oldest && (incidentId === undefined || each.incidentId === incidentId),
      )
    },
    version: () => state.version,
    listen(listener) {
      state.listeners.add(listener)
      return () => void state.listeners.delete(listener)
    },
  }
}

function leave(state: State): void {
  if (state.watchers.size > 0) return
  state.listening?.abort()
  state.listening = null
  state.newest.clear()
}

function take(state: State, live: LiveAnswer): void {
  const now = performance.now()
  for (const [incidentId, { atMs }] of state.newest) if (atMs < now - silentMs) state.newest.delete(incidentId)
  state.version += 1
  const { incidentId } = live
  // Without an id: a stream that is lost goes on after its last row.
  const message = `event: model_writing\ndata: ${JSON.stringify(live)}\n\n`
  state.newest.set(incidentId, { incidentId, version: state.version, message, atMs: now })
  for (const listener of state.listeners) listener()
}
