import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Db, isTransient } from '../../db/connect.ts'
import { type StreamedEvent, type StreamPosition, streamAfter, streamEnd } from '../../db/events.ts'
import { systemScope } from '../../db/scope.ts'

const pollMs = 100
const batch = 500
/** Enough rows for a page that reconnects; a page that was away for longer reads the database. */
const keptRows = 2_000
const keptCharacters = 8_000_000

export type Entry = { position: StreamPosition; incidentId: string; message: string }

/** The newest rows of the log, read once for all listeners, and only while there are any. */
export type Feed = {
  /** Adds a listener. Answers how to remove it. */
  join(): () => void
  /** The place just before the first row that is kept; null until it is known. */
  start(): StreamPosition | null
  /** All rows after a place; null where that reaches further back than what is kept. */
  after(position: StreamPosition): Entry[] | null
  /** Settles at the next change. Take it before looking, so that nothing comes in between. */
  change(): Promise<void>
}

type FeedState = {
  db: Db
  log: Logger
  render: (row: StreamedEvent) => string
  listeners: number
  isRunning: boolean
  start: StreamPosition | null
  rows: Entry[]
  characters: number
  announced: PromiseWithResolvers<void>
}

export function createFeed(db: Db, log: Logger, render: (row: StreamedEvent) => string): Feed {
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
      // From the end: a listener is a few rows behind at most.
      let first = state.rows.length
      while (first > 0 && isBefore(position, (state.rows[first - 1] as Entry).position)) first -= 1
      return state.rows.slice(first)
    },
    change: () => state.announced.promise,
  }
}

/** Reads the log while anybody listens, and forgets it after the last one left. */
async function follow(state: FeedState): Promise<void> {
  state.isRunning = true
  while (state.listeners > 0) {
    const read = await readNext(state)
    if (read < batch) await sleep(pollMs)
  }
  Object.assign(state, { isRunning: false, start: null, rows: [], characters: 0 })
}

function announce(state: FeedState): void {
  state.announced.resolve()
  state.announced = Promise.withResolvers()
}

/** Drops the oldest rows that are too many or too long; answers the place of the last of them. */
function dropOldest(state: FeedState): StreamPosition | null {
  const { rows } = state
  let count = 0
  while (rows.length - count > keptRows || (state.characters > keptCharacters && count < rows.length)) {
    state.characters -= (rows[count] as Entry).message.length
    count += 1
  }
  return rows.splice(0, count).at(-1)?.position ?? null
}

/** Reads on for all listeners at once: a stream leaves out what its own reader may not see. */
async function readNext(state: FeedState): Promise<number> {
  const { db, log, render } = state
  try {
    if (state.start === null) {
      state.start = await streamEnd(systemScope(db))
      // A listener that read the database before this may have missed rows up to here.
      announce(state)
    }
    const read = await streamAfter(systemScope(db), state.rows.at(-1)?.position ?? state.start, { limit: batch })
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
    // The kept rows stay valid; reading continues after them when the database is back.
    if (isTransient(error)) log.debug({ err: error }, 'the stream waits for the database')
    else log.error({ err: error }, 'the stream could not be read')
    return 0
  }
}

/** Numbers without leading zeros: the longer one is the larger one. */
export function isBefore(a: StreamPosition, b: StreamPosition): boolean {
  if (a.tx === b.tx) return a.id < b.id
  return a.tx.length === b.tx.length ? a.tx < b.tx : a.tx.length < b.tx.length
}
