import { receive, request, retryAfterMs } from '../http.ts'

/**
 * Speaks with a cluster's API server: reads alone, over the guarded HTTP of `clients/http.ts`.
 * Sends only GET.
 */

/** Where an API server is, and what it is asked with. */
export type ClusterServer = {
  url: string
  ca: string | null
  client: { cert: string; key: string } | null
  token: string | null
  timeoutMs: number
}

/** `gone`: the asked version is no longer kept; list again. `busy`: asked to come later. */
type ClusterErrorCode = 'unauthorized' | 'forbidden' | 'not_found' | 'gone' | 'busy' | 'rejected' | 'failed' | 'no_json'

/** What an API server answered instead of an object. */
export class ClusterError extends Error {
  override name = 'ClusterError' as const
  readonly code: ClusterErrorCode
  readonly status: number
  /** The server asks for it, of 429 and 503. */
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

/** A path below the server's address with its query. */
const addressOf = (server: ClusterServer, path: string): string => `${server.url.replace(/\/+$/, '')}${path}`

/** One object or list. Throws HttpError, and ClusterError for what is no success. */
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

/** Text, such as lines of a log; what is longer than `maxBytes` is cut. */
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

/** Longer than any object that an API server stores. */
const maxEventCharacters = 16_000_000
/** A watch's limit before it is begun again: a repeating server does not go on for ever. */
const maxWatchBytes = 512_000_000

/**
 * A watch's events as they come, until the server ends it or `forMs` are over. One too long, or
 * without JSON, is `null`: something changed, and nobody knows what. Throws HttpError, and
 * ClusterError for no success.
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

/** Lines of a stream; null for one that is longer than an object can be. */
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
  throw new ClusterError('no_json', 200, 'the answer is no JSON')
}

/** What an API server says in a `Status`, on one line; empty where it says nothing. */
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
