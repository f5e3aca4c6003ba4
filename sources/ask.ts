import { endSessionsOf } from '../clients/databases/sessions.ts'
import type { Source, SourceHealth } from '../domain/source.ts'
import { defaultSourcesDirectory, findCredentialTrouble } from './credentials.ts'
import { SourceError } from './kind.ts'
import { endViewOf } from './kubernetes/kept.ts'

/** Number of failures in a row after which a source gets no requests. `restMs`: for how long. */
const failuresToRest = 5
const restMs = 30_000
/** The most parallel requests to one source, so that a storm of incidents does not overload it. */
const maxAtOnce = 8

type State = {
  /** Number of failed requests in a row. */
  failures: number
  restsUntilMs: number
  atOnce: number
  lastOkMs: number | null
  lastError: string | null
  /** True from the time when the source began to rest until its next response. */
  isAway: boolean
}

/** A source that gets no requests after failures in a row, or that responds again later. */
export type SourceChange = { source: string; is: 'away'; because: string } | { source: string; is: 'back' }

/** The state of each source, as observed by this process. */
export type SourceStates = {
  byName: Map<string, State>
  /** Warnings for people about sources that respond, by the source's name. */
  warnings: Map<string, string | null>
  report: (change: SourceChange) => void
  /** The only directory from which files of sources are read. */
  directory: string
}

export const newSourceStates = (
  report: SourceStates['report'] = () => {},
  directory = defaultSourcesDirectory,
): SourceStates => ({ byName: new Map(), warnings: new Map(), report, directory })

/** Forgets the state of a changed or removed source, as if the source had never been queried. */
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
 * Queries one source through its kind's transport, with at most eight requests in parallel. After
 * five failures in a row it sends nothing for 30 s. Then one more failure begins the next 30 s.
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
        `${source.name} failed ${failuresToRest} times (${state.lastError}); Nightshift tries again in ${seconds} s`,
      )
    }
    if (state.atOnce >= maxAtOnce)
      throw new SourceError('BUSY', `${source.name} already answers ${maxAtOnce} queries: try again later`)
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
 * Reports once that a source is away, and once that it is back. A single failure changes only the
 * health of the source.
 */
function reportChanges(source: string, state: State, { byName, report }: SourceStates): () => void {
  return () => {
    // Ignores a response that arrives after the source was changed, because it describes the former
    // source.
    if (byName.get(source) !== state) return
    if (!state.isAway && state.failures >= failuresToRest) {
      state.isAway = true
      report({ source, is: 'away', because: state.lastError ?? 'the source did not answer' })
    } else if (state.isAway && state.failures === 0) {
      state.isAway = false
      report({ source, is: 'back' })
    }
  }
}

function noteAnswer(state: State): void {
  Object.assign(state, { failures: 0, restsUntilMs: 0, lastOkMs: Date.now(), lastError: null })
}

/** Counts a failure of the server, but neither a refused query nor a page that is forbidden. */
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
