import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../../clients/http.ts'
import { ClusterError, type ClusterServer, getObject, watchObjects } from '../../clients/kubernetes/server.ts'
import type { CredentialHider } from '../../domain/hidden-credentials.ts'
import { fieldsOf, wordOf } from './fields.ts'
import { pathOf } from './kinds.ts'
import { keep } from './objects.ts'
import { type ClusterView, type FollowState, putObject, removeObject, replaceListed } from './view.ts'

/**
 * Follows one kind of objects: reads a list in pages, then watches changes from the list's version.
 * A watch that ended is resumed from its last version. If the server no longer has the version
 * (410), the kind is listed again, after waits that double up to ten minutes.
 */

export type FollowTimes = {
  /** Milliseconds of the first wait after a failure. Each further wait doubles. */
  retryMs: number
  maxRetryMs: number
  /** The longest wait before the next list, and the time for which a list counts as new. */
  relistMs: number
  /** Milliseconds between attempts to read a kind that is forbidden or absent. */
  forbiddenMs: number
  /** Seconds for which one watch lasts. */
  watchSeconds: number
}

export const usualTimes: FollowTimes = {
  retryMs: 1_000,
  maxRetryMs: 60_000,
  relistMs: 600_000,
  forbiddenMs: 300_000,
  watchSeconds: 280,
}

/**
 * Page sizes of a list, the largest first. The first size with which a page stays within the byte
 * limit is used. With 10,000 pods, pages of 500 need half as much memory again.
 */
const pageSizes = [200, 50, 10, 1] as const
const maxPageBytes = 24_000_000
/** Number of pages above which a list counts as endless. */
const maxPages = 2_000
/**
 * Number of failures in a row after which the kind is listed again. After a restore or an update,
 * servers refuse an unknown version in many different ways.
 */
const maxWatchFailures = 3

/**
 * Connects to an API server. `hide` hides the credential, because an object may repeat the
 * credential.
 */
export type OpenServer = () => { server: ClusterServer; hide: CredentialHider }

type Following = {
  view: ClusterView
  state: FollowState
  /** Called for each request, because tokens rotate. */
  open: OpenServer
  signal: AbortSignal
  times: FollowTimes
  /** Called after each list and each failure. Only the first call has an effect. */
  onFirst: () => void
  /**
   * Runs one list at a time per cluster. This limits the memory for objects that are parsed but not
   * yet shortened.
   */
  inTurn: <T>(work: () => Promise<T>) => Promise<T>
}

/** Follows a kind until the signal aborts. Never throws. */
export async function follow(following: Following): Promise<void> {
  const { state, signal, times, onFirst } = following
  let version: string | null = null
  let failures = 0
  let relists = 0
  while (!signal.aborted) {
    try {
      if (version === null) {
        await waitBeforeList(following, relists)
        const isSoon = state.listedMs !== null && Date.now() - state.listedMs < times.relistMs
        relists = isSoon ? relists + 1 : 0
        version = await following.inTurn(() => listAll(following))
        onFirst()
      }
      version = await watchOnce(following, version)
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      // Lists again at once if the server no longer has the version of the watch. If even the list
      // lost its version while it was read, this is a failure, after which a wait follows.
      if (error instanceof ClusterError && error.code === 'gone' && version !== null) {
        version = null
        continue
      }
      state.trouble = { error, sinceMs: state.trouble?.sinceMs ?? Date.now() }
      onFirst()
      await pause(waitAfter(error, failures, times), signal)
      failures += 1
      if (failures >= maxWatchFailures) version = null
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
}

async function waitBeforeList({ state, signal, times }: Following, relists: number): Promise<void> {
  if (state.listedMs === null || Date.now() - state.listedMs >= times.relistMs) return
  await pause(Math.min(times.relistMs, times.retryMs * 2 ** relists), signal)
}

function waitAfter(error: unknown, failures: number, times: FollowTimes): number {
  const isRefused = error instanceof ClusterError && /forbidden|not_found/.test(error.code)
  if (isRefused) return times.forbiddenMs
  const asked = error instanceof ClusterError ? (error.retryAfterMs ?? 0) : 0
  const doubled = Math.min(times.maxRetryMs, times.retryMs * 2 ** Math.min(failures, 10))
  // Waits for random times, so that many disconnected clients do not return at one time.
  return Math.max(Math.min(asked, times.relistMs), doubled * (0.5 + Math.random() / 2))
}

/** Reads the complete list of a kind. Returns the version from which to watch. */
async function listAll(following: Following): Promise<string> {
  const { view, state, open, signal, times } = following
  const { kind, namespace } = state
  const beganMs = Date.now()
  const seen = new Set<string>()
  const followed = new Set<string>()
  let next = ''
  let size = 0
  let unread = 0
  for (let page = 0; page < maxPages; page += 1) {
    signal.throwIfAborted()
    const query = new URLSearchParams({ limit: String(pageSizes[size]), ...(next !== '' && { continue: next }) })
    const { server, hide } = open()
    let answer: unknown
    try {
      answer = await getObject(server, `${pathOf(kind, namespace)}?${query}`, maxPageBytes)
    } catch (error) {
      const isTooLarge = error instanceof HttpError && error.code === 'too_large'
      if (!isTooLarge || size === pageSizes.length - 1) throw error
      size += 1
      continue
    }
    const { items, metadata } = fieldsOf(answer)
    if (!Array.isArray(items)) throw new ClusterError('no_json', 200, 'the response is not a list')
    for (const item of items) {
      const object = keep(kind, item)
      if (object === null || (namespace !== null && object.namespace !== namespace)) unread += 1
      else {
        putObject(view, hide.value(object))
        seen.add(object.uid)
      }
    }
    const about = fieldsOf(metadata)
    next = typeof about.continue === 'string' ? about.continue : ''
    if (next === '') {
      const nowMs = Date.now()
      replaceListed(view, state, seen, nowMs)
      Object.assign(state, { listedMs: nowMs, heardMs: nowMs, trouble: null, unread })
      return wordOf(about.resourceVersion)
    }
    // Stops a list that takes too long or repeats a page, because other kinds wait to be listed.
    if (followed.has(next) || Date.now() - beganMs > times.relistMs) break
    followed.add(next)
  }
  throw new ClusterError('failed', 200, `the list did not end after ${followed.size} pages`)
}

/**
 * Runs one watch to its end and returns its last version. Throws ClusterError `gone` if the server
 * no longer has the version.
 */
async function watchOnce(following: Following, from: string): Promise<string> {
  const { state, open, signal, times } = following
  const { server, hide } = open()
  const beganMs = Date.now()
  let version = from
  const query = new URLSearchParams({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: from,
    timeoutSeconds: String(times.watchSeconds),
  })
  let fault: ClusterError | null = null
  const stop = new AbortController()
  try {
    await watchObjects(server, `${pathOf(state.kind, state.namespace)}?${query}`, {
      // Waits a little longer than the server keeps the watch open.
      forMs: (times.watchSeconds + 30) * 1_000,
      signal: AbortSignal.any([signal, stop.signal]),
      onEvent(event) {
        const outcome = take(following, event, hide, version)
        if (outcome instanceof ClusterError) {
          fault = outcome
          stop.abort()
        } else version = outcome
      },
    })
  } catch (error) {
    if (fault !== null) throw fault
    // Resumes a watch that broke off from its last version. A watch without any event has failed.
    if (version === from || signal.aborted) throw error
  }
  if (fault !== null) throw fault
  state.trouble = null
  // Pauses if the server ends each watch at once.
  if (Date.now() - beganMs < times.retryMs) await pause(times.retryMs, signal)
  return version
}

const isNumber = /^\d{1,30}$/

/**
 * Whether a version is lower than another version. A server's versions only grow, so a lower
 * version comes from a restored server or another server.
 */
const isBefore = (version: string, than: string): boolean =>
  isNumber.test(version) && isNumber.test(than) && BigInt(version) < BigInt(than)

/** Applies one event. Returns the version after the event, or why the watch cannot continue. */
function take({ view, state }: Following, event: unknown, hide: CredentialHider, from: string): string | ClusterError {
  const { type, object } = fieldsOf(event)
  if (type === 'ERROR') {
    const { code, message } = fieldsOf(object)
    const said = typeof message === 'string' ? message.slice(0, 200) : 'an error'
    return new ClusterError(code === 410 ? 'gone' : 'failed', Number(code) || 500, said)
  }
  // Lists again after an event that cannot be read, because it may have been any change.
  if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED' && type !== 'BOOKMARK') {
    state.unread += 1
    return new ClusterError('gone', 200, 'an event of the watch could not be read')
  }
  const nowMs = Date.now()
  state.heardMs = nowMs
  state.trouble = null
  const version = wordOf(fieldsOf(fieldsOf(object).metadata).resourceVersion) || from
  if (isBefore(version, from)) return new ClusterError('gone', 200, 'the watch went back to an older version')
  if (type === 'BOOKMARK') return version
  const kept = keep(state.kind, object)
  if (kept === null || (state.namespace !== null && kept.namespace !== state.namespace)) state.unread += 1
  else if (type === 'DELETED') removeObject(view, kept.uid, nowMs)
  else putObject(view, hide.value(kept))
  return version
}
