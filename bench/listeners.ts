import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBefore } from '../api/routes/feed.ts'
import type { StreamPosition } from '../db/events.ts'

export type Heard = { received: number; missing: number; duplicates: number; outOfOrder: number }
type Listeners = {
  /** Settles when everybody has a place in the stream, so that whatever is written from now on is theirs. */
  ready: Promise<void>
  /** What has become of these rows at every listener so far. */
  heard(rows: readonly string[]): Heard[]
  counts: { reconnects: number; refused: number }
  /** From the time a row bears until it was read, for every row at every listener. */
  delaysMs: number[]
  /** Hangs up. */
  end(): void
}

type Listener = { place: string; places: string[]; connection: IncomingMessage | null; ended: boolean }

/**
 * Pages that listen to the stream, each on a separate connection that is cut off every so often, in the middle of whatever it
 * was reading, and resumed with the last id that was read in full.
 */
export function listen(options: { url: string; token: string; count: number; dropEveryMs: number }): Listeners {
  const delaysMs: number[] = []
  const counts = { reconnects: 0, refused: 0 }
  const listeners = Array.from(
    { length: options.count },
    (): Listener => ({ place: '', places: [], connection: null, ended: false }),
  )
  const ready = listeners.map(async (listener, n) => {
    const placed = Promise.withResolvers<void>()
    void stay(listener, placed.resolve, (n / options.count) * options.dropEveryMs)
    await placed.promise
  })

  async function stay(listener: Listener, placed: () => void, firstDropMs: number): Promise<void> {
    // Not all at the same moment, as pages do not.
    let dropInMs = firstDropMs + 1
    while (!listener.ended) {
      // A connection that fails is tried again, as a page does; after the end it is ignored.
      const response = await open(listener).catch(() => null)
      if (response?.statusCode !== 200 || listener.ended) {
        counts.refused += 1
        response?.destroy()
        await sleep(200)
        continue
      }
      listener.connection = response
      const timer = setTimeout(() => response.destroy(), dropInMs)
      dropInMs = options.dropEveryMs
      await read(response, listener, placed)
      clearTimeout(timer)
      counts.reconnects += 1
    }
  }

  function open({ place }: Listener): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${options.token}`, ...(place && { 'last-event-id': place }) }
      request(`${options.url}/api/v1/stream`, { headers, agent: false }, resolve).on('error', reject).end()
    })
  }

  async function read(response: IncomingMessage, listener: Listener, placed: () => void): Promise<void> {
    let text = ''
    response.setEncoding('utf8')
    try {
      for await (const chunk of response) {
        text += chunk
        const messages = text.split('\n\n')
        text = messages.pop() ?? ''
        for (const message of messages) {
          listener.place = /^id: (.*)$/m.exec(message)?.[1] ?? listener.place
          placed()
          const data = /^data: (.*)$/m.exec(message)?.[1]
          if (data === undefined) continue
          listener.places.push(listener.place)
          const at = /"at":"([^"]+)"/.exec(data)?.[1]
          if (at) delaysMs.push(Date.now() - Date.parse(at))
        }
      }
    } catch {
      // Cut off, as it was meant to be.
    }
  }

  return {
    ready: Promise.all(ready).then(() => undefined),
    heard: (rows) => listeners.map(({ places }) => compare(rows, places)),
    counts,
    delaysMs,
    end() {
      for (const listener of listeners) {
        listener.ended = true
        listener.connection?.destroy()
      }
    },
  }
}

/** What was written against what was heard; rows of others do not count. */
function compare(rows: readonly string[], places: readonly string[]): Heard {
  const written = new Set(rows)
  const mine = places.map(positionOf).filter(({ id }) => written.has(String(id)))
  const distinct = new Set(mine.map(({ id }) => id))
  return {
    received: mine.length,
    missing: rows.length - distinct.size,
    duplicates: mine.length - distinct.size,
    outOfOrder: mine.filter((place, n) => n > 0 && isBefore(place, mine[n - 1] as StreamPosition)).length,
  }
}

function positionOf(place: string): StreamPosition {
  const [tx = '', id] = place.split('-')
  return { tx, id: Number(id) }
}
