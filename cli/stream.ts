import { setTimeout as delay } from 'node:timers/promises'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { type LiveAnswer, liveAnswer } from '../domain/chat.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { closedStatuses } from '../domain/incident.ts'
import { type ApiClient, ApiProblem } from './api.ts'
import { type ApiIncident, listEventsAfter, parseEvent, readIncident } from './read-api.ts'

/** Milliseconds before a lost stream is opened again. */
const reconnectMs = 500

type StreamOptions = {
  incidentId?: string
  /** Skips the rows of the incident up to this number. */
  afterSeq?: number
  signal?: AbortSignal
  onLost?: (why: string) => void
  onOpen?: () => void
  /** Called with the model's current output, whose text is untrusted. */
  onLive?: (live: LiveAnswer) => void
}

/**
 * Yields live rows until the signal aborts. If the connection is lost, connects again with the id
 * of the last message. Row numbers of an incident have no gaps, so missing rows are noticed and
 * fetched. Yields no row twice. Throws ApiProblem for a refusal (4xx).
 */
export async function* streamEvents(api: ApiClient, options: StreamOptions = {}): AsyncGenerator<IncidentEvent> {
  const { incidentId, afterSeq } = options
  const seen = new Map(incidentId && afterSeq ? [[incidentId, afterSeq] as const] : [])
  let lastId: string | undefined
  while (!options.signal?.aborted) {
    // Closes this connection in every case, because an open connection would keep the process
    // alive.
    const round = new AbortController()
    const signal = options.signal ? AbortSignal.any([options.signal, round.signal]) : round.signal
    try {
      const query = options.incidentId ? `?incident=${encodeURIComponent(options.incidentId)}` : ''
      const response = await api.open(`/api/v1/stream${query}`, {
        headers: { accept: 'text/event-stream', ...(lastId && { 'last-event-id': lastId }) },
        signal,
      })
      // Yields the rows that were written before this connection opened.
      options.onOpen?.()
      if (options.incidentId) {
        yield* takeNew(await listEventsAfter(api, options.incidentId, seen.get(options.incidentId)), seen)
      }
      if (!response.body) throw new Error('the response has no body')
      for await (const message of response.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream())) {
        if (message.id) lastId = message.id
        if (message.event === 'model_writing') {
          const live = parseLive(message.data)
          if (live) options.onLive?.(live)
          continue
        }
        const event = parseMessage(message.data)
        if (!event) continue
        const before = seen.get(event.incidentId)
        if (before !== undefined && event.seq > before + 1) {
          yield* takeNew(await listEventsAfter(api, event.incidentId, before), seen)
        }
        yield* takeNew([event], seen)
      }
      options.onLost?.('the stream ended')
    } catch (error) {
      if (options.signal?.aborted) return
      if (error instanceof ApiProblem && error.problem.status >= 400 && error.problem.status < 500) throw error
      options.onLost?.(error instanceof Error ? error.message : String(error))
    } finally {
      round.abort()
    }
    await delay(reconnectMs, undefined, { signal: options.signal }).catch(() => undefined)
  }
}

type FollowOptions = Omit<StreamOptions, 'incidentId'> & {
  /** Whether a closed incident is final, and will not open again. Default: always. */
  isOver?: (incident: ApiIncident) => boolean
}

/** Yields the past and future rows of one incident until it is closed. */
export async function* followIncident(
  api: ApiClient,
  incidentId: string,
  options: FollowOptions = {},
): AsyncGenerator<IncidentEvent> {
  const { isOver = () => true, ...rest } = options
  const isClosed = (incident: ApiIncident) => closedStatuses.includes(incident.status) && isOver(incident)
  const before = await readIncident(api, incidentId)
  // Ends if the incident is closed and has no more rows, because it may never get another row.
  const last = isClosed(before) ? before.events : null
  if (last !== null && last <= (options.afterSeq ?? 0)) return
  for await (const event of streamEvents(api, { ...rest, incidentId })) {
    yield event
    if (last !== null && event.seq >= last) return
    if (last !== null || !closingKinds.has(event.kind)) continue
    const now = await readIncident(api, incidentId)
    // Compares the attempts, because an earlier attempt may have ended with a row of the same kind.
    if (isClosed(now) && now.attempt === event.attempt) return
  }
}

const closingKinds = new Set<string>(['resolved', 'escalated', 'cancelled'])

/** Reads the row in a message of the stream. Null for another message, such as a keep-alive. */
function parseMessage(text: string): IncidentEvent | null {
  try {
    return parseEvent(JSON.parse(text))
  } catch {
    return null
  }
}

function parseLive(text: string): LiveAnswer | null {
  try {
    return liveAnswer.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}

function* takeNew(events: IncidentEvent[], seen: Map<string, number>): Generator<IncidentEvent> {
  for (const event of events) {
    if (event.seq <= (seen.get(event.incidentId) ?? 0)) continue
    seen.set(event.incidentId, event.seq)
    yield event
  }
}
