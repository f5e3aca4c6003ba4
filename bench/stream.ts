import { rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBefore } from '../api/routes/stream.ts'
import { createToken, ensureOperator } from '../db/access/tokens.ts'
import { connect, type Db } from '../db/connect.ts'
import { openIncident } from '../db/incidents/incidents.ts'
import { append } from '../db/log/append.ts'
import type { StreamPosition } from '../db/log/stream.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { median, percentile, report, startApi } from './stage.ts'

const connections = Number(process.env.CONNECTIONS ?? 200)
const perSecond = Number(process.env.PER_SECOND ?? 50)
const seconds = Number(process.env.SECONDS ?? 60)
const dropEveryMs = 5_000
const incidents = 20
const arriveWithinMs = 60_000

/**
 * Measures open pages while rows are written. Checks whether every page gets every row once, over
 * connections that are cut off.
 */
export async function stream(): Promise<void> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url)
  const operatorId = await ensureOperator(db, 'bench', 'viewer')
  const token = await createToken(db, { name: 'bench', role: 'viewer', operatorId })
  const api = await startApi({ databaseUrl: postgres.url, dir })
  const idle = api.residentMb()
  const listeners = listen({ url: api.url, token, count: connections, dropEveryMs })
  await listeners.ready
  const rows = await writeRows(db)
  const deadline = performance.now() + arriveWithinMs
  while (listeners.heard(rows).some(({ missing }) => missing > 0) && performance.now() < deadline) await sleep(500)
  const busy = api.residentMb()
  listeners.end()
  const heard = listeners.heard(rows)
  const { delaysMs, counts } = listeners
  const max = (of: (each: (typeof heard)[number]) => number) => Math.max(...heard.map(of))
  report('stream', {
    connections,
    'rows written, each through append()': rows.length,
    'rows a second': Math.round(rows.length / seconds),
    'connections cut off and resumed': counts.reconnects,
    'turned away for now': counts.refused,
    'missing, worst connection (0)': max(({ missing }) => missing),
    'twice, worst connection (0)': max(({ duplicates }) => duplicates),
    'out of order, worst connection (0)': max(({ outOfOrder }) => outOfOrder),
    'row to page, median (ms)': Math.round(median(delaysMs)),
    'row to page, p99 (ms)': Math.round(percentile(delaysMs, 99)),
    'API without pages (MB)': idle,
    'API with them (MB)': busy,
  })
  await api.stop()
  await db.destroy()
  await postgres.stop()
  rmSync(dir, { recursive: true, force: true })
}

/**
 * Writes rows at an even pace, however long a write takes. Returns the ids of the rows in commit
 * order.
 */
async function writeRows(db: Db): Promise<string[]> {
  const ids = await Promise.all(
    Array.from({ length: incidents }, (_, n) =>
      db.transaction().execute((trx) =>
        openIncident(trx, {
          type: 'disk_pressure',
          severity: 'warning' as const,
          severitySource: 'alert' as const,
          title: `Disk ${n} is full`,
          resource: null,
          requestedBy: null,
        }),
      ),
    ),
  )
  const startedAt = performance.now()
  const writes: Promise<string>[] = []
  for (let n = 0; n < perSecond * seconds; n += 1) {
    await sleep(Math.max(0, startedAt + (n * 1000) / perSecond - performance.now()))
    writes.push(writeRow(db, ids[n % incidents]?.id as string, n))
  }
  return await Promise.all(writes)
}

async function writeRow(db: Db, incidentId: string, n: number): Promise<string> {
  const text = `Row ${n}: ${'the replica is behind its primary '.repeat(8)}`
  const { event } = await db.transaction().execute((trx) =>
    append(trx, incidentId, null, {
      kind: 'commented' as const,
      actor: 'user:bench',
      detail: text,
      metadata: { text, confidence: null, action: null },
    }),
  )
  return String(event.id)
}

type StreamComparison = { received: number; missing: number; duplicates: number; outOfOrder: number }
type Listeners = {
  /**
   * Resolves when every page has a place in the stream. Each page then gets the rows that are
   * written from now on.
   */
  ready: Promise<void>
  /** Compares the written `rows` with the rows that each listener has read up to now. */
  heard(rows: readonly string[]): StreamComparison[]
  counts: { reconnects: number; refused: number }
  /**
   * Milliseconds from the time in a row until a listener read it, for every row at every listener.
   */
  delaysMs: number[]
  end(): void
}

type Listener = { place: string; places: string[]; connection: IncomingMessage | null; ended: boolean }

type ListenOptions = { url: string; token: string; count: number; dropEveryMs: number }
type ListenerGroup = { options: ListenOptions; delaysMs: number[]; counts: { reconnects: number; refused: number } }

/**
 * Opens connections that listen like pages. Each connection is cut at intervals while it reads, and
 * resumed after the last row that was fully read.
 */
export function listen(options: ListenOptions): Listeners {
  const group: ListenerGroup = { options, delaysMs: [], counts: { reconnects: 0, refused: 0 } }
  const listeners = Array.from(
    { length: options.count },
    (): Listener => ({ place: '', places: [], connection: null, ended: false }),
  )
  const ready = listeners.map(async (listener, n) => {
    const placed = Promise.withResolvers<void>()
    void stay(group, listener, placed.resolve, (n / options.count) * options.dropEveryMs)
    await placed.promise
  })
  return {
    ready: Promise.all(ready).then(() => undefined),
    heard: (rows) => listeners.map(({ places }) => compare(rows, places)),
    counts: group.counts,
    delaysMs: group.delaysMs,
    end() {
      for (const listener of listeners) {
        listener.ended = true
        listener.connection?.destroy()
      }
    },
  }
}

async function stay(group: ListenerGroup, listener: Listener, placed: () => void, firstDropMs: number): Promise<void> {
  // Cuts the connections at different times, as the connections of real pages end.
  let dropInMs = firstDropMs + 1
  while (!listener.ended) {
    // Opens a failed connection again, as a page does, and ignores its failure.
    const response = await open(group.options, listener).catch(() => null)
    if (response?.statusCode !== 200 || listener.ended) {
      group.counts.refused += 1
      response?.destroy()
      await sleep(200)
      continue
    }
    listener.connection = response
    const timer = setTimeout(() => response.destroy(), dropInMs)
    dropInMs = group.options.dropEveryMs
    await read(response, listener, placed, group.delaysMs)
    clearTimeout(timer)
    group.counts.reconnects += 1
  }
}

function open({ url, token }: ListenOptions, { place }: Listener): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, ...(place && { 'last-event-id': place }) }
    request(`${url}/api/v1/stream`, { headers, agent: false }, resolve).on('error', reject).end()
  })
}

async function read(
  response: IncomingMessage,
  listener: Listener,
  placed: () => void,
  delaysMs: number[],
): Promise<void> {
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
    // Ignores the error, because the bench cuts connections on purpose.
  }
}

/** Compares the written rows with the rows that a listener read. Ignores all further rows. */
function compare(rows: readonly string[], places: readonly string[]): StreamComparison {
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
