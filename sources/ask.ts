import { endSessionsOf } from '../clients/databases/sessions.ts'
import type { Source, SourceHealth } from '../domain/source.ts'
import { defaultSourcesDirectory, findCredentialTrouble } from './credentials.ts'
import { SourceError } from './kind.ts'
import { endViewOf } from './kubernetes/kept.ts'

/** Failures in a row after which a source is left alone, and for how long. */
const failuresToRest = 5
const restMs = 30_000
/** Requests to one source at once: a storm of incidents is no load test. */
const maxAtOnce = 8

type State = {
  /** In a row. */
  failures: number
  restsUntilMs: number
  atOnce: number
  lastOkMs: number | null
  lastError: string | null
  /** It was left alone, and has not answered since. */
  isAway: boolean
}

/** A source that is left alone after failures in a row, or that answers after that. */
export type SourceChange = { source: string; is: 'away'; because: string } | { source: string; is: 'back' }

/** How the sources did, as this process saw them. */
export type SourceStates = {
  byName: Map<string, State>
  /** For answering sources: what people should know of each. */
  warnings: Map<string, string | null>
  report: (change: SourceChange) => void
  /** The only one whose files a source may name. */
  directory: string
}

export const newSourceStates = (
  report: SourceStates['report'] = () => {},
  directory = defaultSourcesDirectory,
): SourceStates => ({ byName: new Map(), warnings: new Map(), report, directory })

/** A source that was changed or removed begins as one that nobody asked. */
export function forgetSource({ byName, warnings }: SourceStates, name: string): void {
  byName.delete(name)
  warnings.delete(name)
  endSessionsOf(name)
  endViewOf(name)
}

const newState = (): State => ({
  failures: 0,
  restsUntilMs: 0,
  atOnce: 0,
  lastOkMs: null,
  lastError: null,
  isAway: false,
})

export function healthOf({ byName, directory }: SourceStates, source: Source, nowMs: number): SourceHealth {
  const state = byName.get(source.name)
  const trouble = findCredentialTrouble(source, directory)
  const lastOkAt = state?.lastOkMs == null ? null : new Date(state.lastOkMs).toISOString()
  if (trouble) return { state: 'failing', lastOkAt, lastError: trouble.text, restsUntil: null }
  if (!state) return { state: 'unknown', lastOkAt: null, lastError: null, restsUntil: null }
  const isResting = state.restsUntilMs > nowMs
  return {
    state: isResting ? 'resting' : state.failures > 0 ? 'failing' : state.lastOkMs === null ? 'unknown' : 'ok',
    lastOkAt,
    lastError: state.failures > 0 ? state.lastError : null,
    restsUntil: isResting ? new Date(state.restsUntilMs).toISOString() : null,
  }
}

/**
 * Asks one source by its kind's transport, eight things at once at most. After five failures in a
 * row it sends nothing for 30 s, then one request finds out.
 */
export function guardAsker<Request>(
  source: Source,
  states: SourceStates,
  send: (request: Request) => Promise<unknown>,
): (request: Request) => Promise<unknown> {
  const state = states.byName.get(source.name) ?? newState()
  states.byName.set(source.name, state)
  const report = reportChanges(source.name, state, states)
  return async (asked) => {
    const nowMs = Date.now()
    if (state.restsUntilMs > nowMs) {
      const seconds = Math.ceil((state.restsUntilMs - nowMs) / 1000)
      throw new SourceError(
        'RESTING',
        `${source.name} failed ${failuresToRest} times (${state.lastError}); asked again in ${seconds} s`,
      )
    }
    if (state.atOnce >= maxAtOnce)
      throw new SourceError('BUSY', `${source.name} is asked ${maxAtOnce} things already: ask again`)
    state.atOnce += 1
    try {
      const answer = await send(asked)
      noteAnswer(state)
      return answer
    } catch (error) {
      noteFailure(state, error)
      throw error
    } finally {
      state.atOnce -= 1
      report()
    }
  }
}

/**
 * Says once that a source is away, and once that it is back; a single failure is its health, and no
 * change.
 */
function reportChanges(source: string, state: State, { byName, report }: SourceStates): () => void {
  return () => {
    // An answer that comes in after the source was changed is about another one.
    if (byName.get(source) !== state) return
    if (!state.isAway && state.failures >= failuresToRest) {
      state.isAway = true
      report({ source, is: 'away', because: state.lastError ?? 'it gave no answer' })
    } else if (state.isAway && state.failures === 0) {
      state.isAway = false
      report({ source, is: 'back' })
    }
  }
}

function noteAnswer(state: State): void {
  Object.assign(state, { failures: 0, restsUntilMs: 0, lastOkMs: Date.now(), lastError: null })
}

/** What the server refused was the query's fault, or is not ours to read: the server is well. */
function noteFailure(state: State, error: unknown): void {
  if (!(error instanceof SourceError) || error.code === 'BUSY') return
  if (error.code === 'REJECTED' || error.code === 'FORBIDDEN') {
    noteAnswer(state)
    return
  }
  state.failures += 1
  state.lastError = error.message.slice(0, 200)
  if (state.failures >= failuresToRest) state.restsUntilMs = Date.now() + restMs
}
