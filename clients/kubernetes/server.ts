import { receive, request, retryAfterMs } from '../http.ts'

/**
 * Reads from a cluster's API server with the address checks of `clients/http.ts`. Sends only GET.
 */

/** The address of an API server, with the credentials for it. */
export type ClusterServer = {
  url: string
  ca: string | null
  client: { cert: string; key: string } | null
  token: string | null
  timeoutMs: number
}

/** `gone`: the requested version is no longer stored, so list again. `busy`: try again later. */
type ClusterErrorCode = 'unauthorized' | 'forbidden' | 'not_found' | 'gone' | 'busy' | 'rejected' | 'failed' | 'no_json'

/** An API server's error. */
export class ClusterError extends Error {
  override name = 'ClusterError' as const
  readonly code: ClusterErrorCode
  readonly status: number
  /** The wait in milliseconds that the server requested, with 429 or 503. */
  readonly retryAfterMs: number | null
  constructor(code: ClusterErrorCode, status: number, message: string, retryAfter: number | null = null) {
    super(message)
    this.code = code
    this.status = status
    this.retryAfterMs = retryAfter
  }
}

const acceptsJson = { accept: 'application/json', 'user-agent': 'nightshift' }

const headersOf = ({ token }: ClusterServer, accept: Record<string, string>): Record<string, string> => ({
  ...accept,
  ...(token !== null && { authorization: `Bearer ${token}` }),
})

const withTls = ({ ca, client }: ClusterServer) => ({
  ...(ca !== null && { ca }),
  ...(client !== null && { client }),
})

/** Joins a server's address and a path with its query. */
const addressOf = (server: ClusterServer, path: string): string => `${server.url.replace(/\/+$/, '')}${path}`

/** Reads one object or list. Throws HttpError, and ClusterError for a failing status. */
export async function getObject(server: ClusterServer, path: string, maxBytes: number): Promise<unknown> {
  const { status, headers, body } = await request({
    method: 'GET',
    url: addressOf(server, path),
    headers: headersOf(server, acceptsJson),
    timeoutMs: server.timeoutMs,
    maxBytes,
    allow: 'private',
    ...withTls(server),
  })
  const text = Buffer.from(body).toString('utf8')
  if (status !== 200) throw refusalOf(status, headers, text)
  return parseObject(text)
}

/** Reads text, such as lines of a log, cut after `maxBytes`. */
export async function getText(
  server: ClusterServer,
  path: string,
  maxBytes: number,
): Promise<{ text: string; isCut: boolean }> {
  const { status, headers, body } = await request({
    method: 'GET',
    url: addressOf(server, path),
    headers: headersOf(server, { ...acceptsJson, accept: '*/*' }),
    timeoutMs: server.timeoutMs,
    maxBytes,
    overflow: 'cut',
    allow: 'private',
    ...withTls(server),
  })
  const text = Buffer.from(body).toString('utf8')
  if (status !== 200) throw refusalOf(status, headers, text)
  return { text, isCut: body.byteLength >= maxBytes }
}

/** The most characters of an event, more than any object that an API server stores. */
const maxEventCharacters = 16_000_000
/**
 * Bytes of a watch after which the watch is restarted, because a server that repeats itself must
 * not send forever.
 */
const maxWatchBytes = 512_000_000

/**
 * Yields a watch's events as they arrive, until the server ends the watch or `forMs` are over.
 * `null` stands for an event that is too long or is not JSON: an unknown object changed. Throws
 * HttpError, and ClusterError for a failing status.
 */
export async function watchObjects(
  server: ClusterServer,
  path: string,
  { forMs, signal, onEvent }: { forMs: number; signal: AbortSignal; onEvent: (event: unknown) => void },
): Promise<void> {
  await receive(
    {
      method: 'GET',
      url: addressOf(server, path),
      headers: headersOf(server, acceptsJson),
      timeoutMs: forMs,
      maxBytes: maxWatchBytes,
      allow: 'private',
      signal,
      ...withTls(server),
    },
    async ({ status, headers, pieces }) => {
      if (status !== 200) {
        const text = await firstText(pieces)
        throw refusalOf(status, headers, text)
      }
      for await (const line of linesOf(pieces)) onEvent(line === null ? null : parseOrNull(line))
    },
  )
}

async function firstText(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const piece of pieces) {
    text += Buffer.from(piece).toString('utf8')
    if (text.length > 20_000) break
  }
  return text
}

/** Yields the lines of a stream. Null for a line that is longer than an object can be. */
async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string | null> {
  const decoder = new TextDecoder()
  let parts: string[] = []
  let characters = 0
  for await (const piece of pieces) {
    const [first = '', ...more] = decoder.decode(piece, { stream: true }).split('\n')
    characters += first.length
    if (characters <= maxEventCharacters) parts.push(first)
    for (const next of more) {
      const line = parts.join('')
      if (characters > maxEventCharacters) yield null
      else if (line.trim() !== '') yield line
      parts = [next]
      characters = next.length
    }
  }
}

function parseOrNull(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}

function parseObject(text: string): unknown {
  const parsed = parseOrNull(text)
  if (typeof parsed === 'object' && parsed !== null) return parsed
  throw new ClusterError('no_json', 200, 'the response is not JSON')
}

/** Returns the message in an API server's `Status`, on one line. Empty without a message. */
function messageIn(text: string): string {
  const { message } = (parseOrNull(text) ?? {}) as { message?: unknown }
  return typeof message === 'string' ? message.replace(/\s+/g, ' ').slice(0, 300) : ''
}

function refusalOf(status: number, headers: Record<string, string>, text: string): ClusterError {
  const said = messageIn(text)
  const make = (code: ClusterErrorCode) =>
    new ClusterError(code, status, said || `it answered ${status}`, retryAfterMs(headers, Date.now()))
  if (status === 401) return make('unauthorized')
  if (status === 403) return make('forbidden')
  if (status === 404) return make('not_found')
  if (status === 410) return make('gone')
  if (status === 429 || status === 503 || status === 504) return make('busy')
  return make(status === 400 || status === 422 ? 'rejected' : 'failed')
}
