import { setTimeout as sleep } from 'node:timers/promises'
import { createRoute, z } from '@hono/zod-openapi'
import { stream } from 'hono/streaming'
import type { Logger } from 'pino'
import { type Db, isTransient } from '../../db/connect.ts'
import { type StreamedEvent, type StreamPosition, streamAfter, streamEnd } from '../../db/log/stream.ts'
import { type Scope, scopeOf, systemScope } from '../../db/scope.ts'
import { eventKind } from '../../domain/event.ts'
import type { ApiDeps } from '../deps.ts'
import type { Router } from '../http/endpoint.ts'
import { permit } from '../http/guards.ts'
import { Problem } from '../http/problem.ts'
import { eventExample, incidentId } from './examples.ts'
import { requireIncident } from './incidents.ts'
import { createLiveAnswers, type LiveAnswers } from './live-answers.ts'

const pollMs = 100
const feedBatch = 500
/**
 * Maximum number of rows that are kept for a page that reconnects. A page that was away for longer
 * reads the database.
 */
const keptRows = 2_000
const keptCharacters = 8_000_000

type StreamEntry = { position: StreamPosition; incidentId: string; message: string }

/** The newest rows of all logs, read once for all listeners, and only while there are listeners. */
type Feed = {
  /** Adds a listener. Returns a function that removes the listener. */
  join(): () => void
  /** Returns the position just before the first kept row. Null until this position is known. */
  start(): StreamPosition | null
  /** Returns all rows after a position. Null if the position is before the kept rows. */
  after(position: StreamPosition): StreamEntry[] | null
  /** Settles at the next change. Callers call this before they read, so that they miss nothing. */
  change(): Promise<void>
}

type FeedState = {
  db: Db
  log: Logger
  render: (row: StreamedEvent) => string
  listeners: number
  isRunning: boolean
  start: StreamPosition | null
  rows: StreamEntry[]
  characters: number
  announced: PromiseWithResolvers<void>
}

function createFeed(db: Db, log: Logger, render: (row: StreamedEvent) => string): Feed {
  const state: FeedState = {
    db,
    log,
    render,
    listeners: 0,
    isRunning: false,
    start: null,
    rows: [],
    characters: 0,
    announced: Promise.withResolvers<void>(),
  }
  return {
    join() {
      state.listeners += 1
      if (!state.isRunning) void follow(state)
      return () => {
        state.listeners -= 1
      }
    },
    start: () => state.start,
    after(position) {
      if (state.start === null || isBefore(position, state.start)) return null
      // Searches from the end, because a listener is at most a few rows behind.
      let first = state.rows.length
      while (first > 0 && isBefore(position, (state.rows[first - 1] as StreamEntry).position)) first -= 1
      return state.rows.slice(first)
    },
    change: () => state.announced.promise,
  }
}

/** Reads the logs while there are listeners, and forgets the rows after the last one left. */
async function follow(state: FeedState): Promise<void> {
  state.isRunning = true
  while (state.listeners > 0) {
    const read = await readNext(state)
    if (read < feedBatch) await sleep(pollMs)
  }
  Object.assign(state, { isRunning: false, start: null, rows: [], characters: 0 })
}

function announce(state: FeedState): void {
  state.announced.resolve()
  state.announced = Promise.withResolvers()
}

/**
 * Drops the oldest rows if there are too many or they are too long. Returns the position of the
 * last dropped row.
 */
function dropOldest(state: FeedState): StreamPosition | null {
  const { rows } = state
  let count = 0
  while (rows.length - count > keptRows || (state.characters > keptCharacters && count < rows.length)) {
    state.characters -= (rows[count] as StreamEntry).message.length
    count += 1
  }
  return rows.splice(0, count).at(-1)?.position ?? null
}

/**
 * Reads further rows for all listeners at once. Each stream leaves out rows that its reader may not
 * see.
 */
async function readNext(state: FeedState): Promise<number> {
  const { db, log, render } = state
  try {
    if (state.start === null) {
      state.start = await streamEnd(systemScope(db))
      // Notifies listeners, because a listener that has already read the database may have missed
      // rows up to this position.
      announce(state)
    }
    const read = await streamAfter(systemScope(db), state.rows.at(-1)?.position ?? state.start, { limit: feedBatch })
    if (read.length === 0) return 0
    for (const row of read) {
      const { position, incidentId } = row
      const message = render(row)
      state.rows.push({ position, incidentId, message })
      state.characters += message.length
    }
    state.start = dropOldest(state) ?? state.start
    announce(state)
    return read.length
  } catch (error) {
    // Keeps the rows, which are still valid. When the database responds again, reading continues
    // after them.
    if (isTransient(error)) log.debug({ err: error }, 'the stream waits for the database')
    else log.error({ err: error }, 'the stream could not be read')
    return 0
  }
}

/** Compares numbers in text without leading zeros, of which the longer text is larger. */
export function isBefore(a: StreamPosition, b: StreamPosition): boolean {
  if (a.tx === b.tx) return a.id < b.id
  return a.tx.length === b.tx.length ? a.tx < b.tx : a.tx.length < b.tx.length
}

const retryMs = 300
const heartbeatMs = 15_000
const reconnectMs = 3_000
const batch = 200
/**
 * The most listeners: two hundred pages, and their lost connections until these are detected. Each
 * listener needs a socket and some memory. Further listeners are refused.
 */
const maxListeners = 500
/** The form of an event id of the stream. An empty id counts as no id. */
const idShape = /^(?:(\d{1,19})-(\d{1,16}))?$/

const route = createRoute({
  method: 'get',
  path: '/stream',
  tags: ['incidents'],
  summary: 'Rows as they are written (server-sent events)',
  description:
    '`event` is the kind, `data` the row, `id` its position as `<tx>-<id>`. With `Last-Event-ID` the stream continues after that position, without gap or overlap; without it the stream begins now. A `heartbeat` without a position comes after 15 s without other events.\n\n`model_writing` is not a row and has no id: it is the text that the model of an incident is writing, at most twice a second. This text is untrusted and not stored.\n\nPermission: `read`.',
  security: [{ bearer: [] }],
  'x-permission': 'read',
  request: {
    query: z.object({ incident: z.string().max(100).optional() }),
    headers: z.object({ 'last-event-id': z.string().regex(idShape).optional() }),
  },
  responses: {
    200: {
      description: 'A stream that does not end.',
      content: {
        'text/event-stream': {
          // Describes each event, because the stream has no end.
          schema: z.object({
            event: z.enum([...eventKind.options, 'model_writing', 'heartbeat']),
            id: z.string().regex(idShape),
            data: z.string(),
          }),
          example: { event: 'tool_finished' as const, id: '7342-4711', data: JSON.stringify(eventExample) },
        },
      },
    },
    400: { description: 'The address is not percent-encoded UTF-8, or contains NUL.' },
    401: { description: 'The token is missing, unknown, expired or revoked.' },
    404: { description: `There is no such incident (as ${incidentId}).` },
    422: { description: '`Last-Event-ID` is not an id of this stream.' },
    503: { description: 'Too many listeners, or the process is stopping.' },
  },
})

export function streamRoutes(router: Router, deps: ApiDeps): void {
  const { db, closing, log } = deps
  let listeners = 0
  const feed = createFeed(db, log, toMessage)
  const live = createLiveAnswers(db, closing)
  router.openAPIRegistry.registerPath(route)
  router.get('/stream', permit('read'), async (c) => {
    const scope = scopeOf(db, c.get('principal'))
    const incidentId = parseIncident(c.req.query('incident'))
    if (incidentId) await requireIncident(scope, incidentId)
    if (closing.aborted || listeners >= maxListeners) {
      const detail = 'Too many listeners now.'
      throw new Problem(503, 'NO_MORE_LISTENERS', detail, { headers: { 'retry-after': '5' } })
    }
    const last = c.req.header('last-event-id')
    let position = last ? parsePosition(last) : await streamEnd(scope)
    c.header('content-type', 'text/event-stream; charset=utf-8')
    c.header('cache-control', 'no-cache, no-transform')
    c.header('x-accel-buffering', 'no')
    // Ends a HEAD request at once, because a listener would never end.
    if (c.req.method === 'HEAD') return c.body(null)
    listeners += 1
    return stream(c, async (out) => {
      const gone = new AbortController()
      out.onAbort(() => gone.abort())
      const ended = AbortSignal.any([closing, gone.signal])
      const leaveFeed = feed.join()
      const leaveLive = live.join(incidentId)
      try {
        // Sends the position in the first message, so that a stream that is lost before its first
        // row resumes without a gap. `streamSSE` would send an empty event with the position, and
        // format each row once per listener.
        await out.write(`retry: ${reconnectMs}\nid: ${toEventId(position)}\n\n`)
        let wroteAt = performance.now()
        let heard = 0
        while (!ended.aborted) {
          const change = feed.change()
          const version = live.version()
          const read = await readAfter(scope, feed, position, { log, incidentId })
          if (ended.aborted) break
          if (!read) {
            await sleep(retryMs)
            continue
          }
          const { entries, upTo } = read
          const wanted = incidentId ? entries.filter((entry) => entry.incidentId === incidentId) : entries
          for (const { message } of wanted) await out.write(message)
          if (wanted.length > 0) wroteAt = performance.now()
          position = upTo
          if (entries.length > 0) continue
          for (const { message, version } of live.after(heard, incidentId)) {
            await out.write(message)
            heard = version
            wroteAt = performance.now()
          }
          if (live.version() > version) continue
          await changeOr(change, live, wroteAt + heartbeatMs - performance.now(), ended)
          if (!ended.aborted && performance.now() - wroteAt >= heartbeatMs) {
            await out.write('event: heartbeat\ndata: {}\n\n')
            wroteAt = performance.now()
          }
        }
      } finally {
        leaveFeed()
        leaveLive()
        listeners -= 1
      }
    })
  })
}

/**
 * Reads the rows after a position, and the position up to which no more rows exist: from the feed,
 * or from the log if the feed does not reach back far enough. Null while the database does not
 * respond.
 */
async function readAfter(
  scope: Scope,
  feed: Feed,
  after: StreamPosition,
  { log, incidentId }: { log: ApiDeps['log']; incidentId: string | undefined },
): Promise<{ entries: StreamEntry[]; upTo: StreamPosition } | null> {
  const kept = feed.after(after)
  if (kept) return { entries: kept, upTo: kept.at(-1)?.position ?? after }
  const start = feed.start()
  try {
    const rows = await streamAfter(scope, after, { incidentId, limit: batch })
    const newest = rows.at(-1)?.position ?? after
    // Uses the start of the feed. The log is read after the feed started at this position, so no
    // row up to it is missing.
    const upTo = start && rows.length < batch && isBefore(newest, start) ? start : newest
    return {
      entries: rows.map((row) => ({ position: row.position, incidentId: row.incidentId, message: toMessage(row) })),
      upTo,
    }
  } catch (error) {
    if (!isTransient(error)) throw error
    log.debug({ err: error }, 'the stream waits for the database')
    return null
  }
}

/**
 * Waits for a change, a model's message, `ms` milliseconds, or the end. `Promise.race` would keep a
 * handler on every change until the end.
 */
async function changeOr(change: Promise<void>, live: LiveAnswers, ms: number, ended: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer)
      deafen()
      ended.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, Math.max(0, ms))
    ended.addEventListener('abort', done)
    const deafen = live.listen(done)
    void change.then(done)
  })
}

function toEventId({ tx, id }: StreamPosition): string {
  return `${tx}-${id}`
}

function parseIncident(asked: string | undefined): string | undefined {
  if (asked === undefined || asked === '') return undefined
  if (asked.length <= 100) return asked
  throw new Problem(422, 'INVALID', 'incident: is longer than 100 characters, so it is not an id of an incident.')
}

function parsePosition(text: string): StreamPosition {
  const [, tx, id] = idShape.exec(text) ?? []
  if (tx === undefined || id === undefined) {
    throw new Problem(422, 'BAD_LAST_EVENT_ID', 'Last-Event-ID is not an id of this stream.')
  }
  return { tx: String(BigInt(tx)), id: Number(id) }
}

function toMessage({ position, ...row }: StreamedEvent): string {
  // Writes a row as one `data:` line, because JSON contains no line break.
  return `event: ${row.kind}\nid: ${toEventId(position)}\ndata: ${JSON.stringify(row)}\n\n`
}
