import type { Db } from '../../db/connect.ts'
import { allIncidents, listenForLiveAnswers } from '../../db/log/live.ts'
import type { LiveAnswer } from '../../domain/chat.ts'

/** Milliseconds without a message after which the worker that sent the text counts as gone. */
const silentMs = 5_000
/** Milliseconds for which the process listens after the last watcher has left. */
const lingerMs = 10_000

type LiveEntry = { incidentId: string; version: number; message: string; atMs: number }

/**
 * Text that models are writing. Only the newest message of each incident is kept, so that a slow
 * watcher gets fewer messages and nothing accumulates.
 */
export type LiveAnswers = {
  /** Adds a watcher of one incident, or of all. Returns a function that removes the watcher. */
  join(incidentId: string | undefined): () => void
  /**
   * Returns messages after this version, for one incident or all incidents. Version 0 returns the
   * current messages.
   */
  after(version: number, incidentId: string | undefined): LiveEntry[]
  /** Returns the current version, a number that grows with every message. */
  version(): number
  /** Calls `listener` at every message, until the returned function is called. */
  listen(listener: () => void): () => void
}

type State = {
  /** Number of watchers per incident, and number of watchers of all incidents. */
  watchers: Map<string, number>
  version: number
  newest: Map<string, LiveEntry>
  listeners: Set<() => void>
  listening: AbortController | null
}

/** Listens to the database while there are watchers. */
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
  // Sends no event id, so that a stream that was lost continues after its last log row.
  const message = `event: model_writing\ndata: ${JSON.stringify(live)}\n\n`
  state.newest.set(incidentId, { incidentId, version: state.version, message, atMs: now })
  for (const listener of state.listeners) listener()
}
