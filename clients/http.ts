import { isIP, type Socket } from 'node:net'
import { Agent, buildConnector, errors, request as send } from 'undici'
import { type AddressPolicy, allows, guardedLookup } from './address.ts'

const maxMs = 24 * 60 * 60 * 1_000

/**
 * Reads the wait that a server requests in `retry-after-ms` or `Retry-After` (seconds or a date).
 * Null without a sensible value. At most a day: a server must not decide when a run ends.
 */
export function retryAfterMs(headers: Record<string, string>, nowMs: number): number | null {
  const exact = numberOf(headers['retry-after-ms'])
  if (exact !== null) return bounded(exact)
  const text = headers['retry-after']
  if (!text) return null
  const seconds = numberOf(text)
  if (seconds !== null) return bounded(seconds * 1_000)
  const date = Date.parse(text)
  return Number.isNaN(date) ? null : bounded(date - nowMs)
}

function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), maxMs)
}

export type HttpErrorCode =
  | 'timeout'
  | 'connect'
  | 'unavailable'
  | 'too_large'
  | 'refused_address'
  | 'aborted'
  | 'protocol'

/**
 * The reason why no response came. `retryable`: the same request may succeed later. The message
 * contains the origin, but never path, headers or body, because the path of a webhook contains a
 * secret.
 */
export class HttpError extends Error {
  override name = 'HttpError' as const
  readonly code: HttpErrorCode
  readonly retryable: boolean
  constructor(code: HttpErrorCode, message: string, retryable: boolean) {
    super(message)
    this.code = code
    this.retryable = retryable
  }
}

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  url: string
  headers?: Record<string, string>
  body?: string | Uint8Array
  /** Milliseconds from the request to the last byte of the response. */
  timeoutMs: number
  /** The most bytes of the response's body. A larger body gives the error `too_large`. */
  maxBytes: number
  /** `cut` shortens a longer body instead of refusing it, for callers that need only the status. */
  overflow?: 'refuse' | 'cut'
  allow: AddressPolicy
  /** PEM of the trusted authorities, which replace the system's authorities. */
  ca?: string
  /** PEM of the client certificate that the server requests, and of its key. */
  client?: { cert: string; key: string }
  signal?: AbortSignal
}

type HttpAnswer = {
  status: number
  /** The text of the status line, in which some servers write the reason of an error. */
  statusText: string
  /** Headers by lower-case name. Repeated headers are joined by `, `. */
  headers: Record<string, string>
  body: Uint8Array
}

const connectTimeoutMs = 10_000

/**
 * The pools of connections: one per policy, authority and certificate, so that no request uses a
 * connection that another policy allowed.
 */
const agents = new Map<string, Agent>()

/**
 * Makes one HTTP exchange once: returns the complete response of any status, or throws HttpError.
 * Follows no redirect, decompresses nothing, and uses no proxy. Sends nothing before the peer's
 * address passed the policy.
 */
export async function request(options: HttpRequest): Promise<HttpAnswer> {
  const exchange = beginExchange(options)
  try {
    const answer = await exchange.send()
    const { body, isCut } = await readAll(answer.body, options.maxBytes)
    if (isCut && options.overflow !== 'cut') {
      const what = `the response to ${exchange.what}`
      throw new HttpError('too_large', `${what} is larger than ${options.maxBytes} bytes`, false)
    }
    return { status: answer.statusCode, statusText: answer.statusText, headers: flat(answer.headers), body }
  } catch (error) {
    throw exchange.toHttpError(error)
  } finally {
    exchange.end()
  }
}

type OpenAnswer = {
  status: number
  /** Headers by lower-case name. Repeated headers are joined by `, `. */
  headers: Record<string, string>
  /**
   * The bytes of the body as they arrive. Throws HttpError if the connection breaks, the time is
   * over, or the body is too large.
   */
  pieces: AsyncIterable<Uint8Array>
}

/**
 * Works like `request`, but reads the response while it arrives. Throws an error of `read`
 * unchanged, and then ends the connection.
 */
export async function receive<T>(options: HttpRequest, read: (answer: OpenAnswer) => Promise<T>): Promise<T> {
  const exchange = beginExchange(options)
  try {
    const answer = await exchange.send().catch((error: unknown) => {
      throw exchange.toHttpError(error)
    })
    const body: Body = answer.body
    // Handles the body's error: a reader that stops early destroys the body, which must not crash
    // the process.
    answer.body.on('error', () => {})
    try {
      const pieces = boundedPieces(body, exchange, options.maxBytes)
      return await read({ status: answer.statusCode, headers: flat(answer.headers), pieces })
    } finally {
      body.destroy()
    }
  } finally {
    exchange.end()
  }
}

async function* boundedPieces(
  body: Body,
  { what, toHttpError }: Pick<ReturnType<typeof beginExchange>, 'what' | 'toHttpError'>,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  try {
    for await (const piece of body) {
      bytes += piece.byteLength
      if (bytes > maxBytes) {
        throw new HttpError('too_large', `the response to ${what} is larger than ${maxBytes} bytes`, false)
      }
      yield piece
    }
  } catch (error) {
    throw toHttpError(error)
  }
}

/**
 * Yields the lines of a response as they arrive. Checks the address and limits time and size as
 * `request` does. Throws HttpError, also for a failing status.
 */
export async function* streamLines(options: HttpRequest): AsyncGenerator<string> {
  const exchange = beginExchange(options)
  const { what } = exchange
  try {
    const answer = await exchange.send()
    if (answer.statusCode !== 200) {
      answer.body.destroy()
      throw new HttpError('protocol', `${what} answered ${answer.statusCode}`, answer.statusCode >= 500)
    }
    yield* linesIn(boundedPieces(answer.body as Body, exchange, options.maxBytes))
  } catch (error) {
    throw exchange.toHttpError(error)
  } finally {
    exchange.end()
  }
}

/**
 * Splits a text that comes in pieces into lines. Searches each piece only once, so that an endless
 * line costs no more than its bytes.
 */
export async function* linesIn(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let begun: string[] = []
  for await (const piece of pieces) {
    const [first = '', ...others] = decoder.decode(piece, { stream: true }).split('\n')
    begun.push(first)
    for (const next of others) {
      yield withoutReturn(begun.join(''))
      begun = [next]
    }
  }
  const rest = begun.join('')
  if (rest !== '') yield rest
}

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line)

/**
 * Checks the address, and starts the time of an exchange. `what` names the exchange in errors,
 * without its path. The caller ends the time after the last byte.
 */
function beginExchange(options: HttpRequest) {
  const url = URL.parse(options.url)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new HttpError('protocol', 'the address is not an http(s) URL', false)
  }
  const what = `${options.method} ${url.origin}`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0 && !allows(options.allow, host)) throw refused(what)
  if (options.signal?.aborted) throw new HttpError('aborted', `${what} was cancelled before it began`, false)

  const timeout = new AbortController()
  const timer = setTimeout(() => timeout.abort(), options.timeoutMs)
  const signal = options.signal ? AbortSignal.any([timeout.signal, options.signal]) : timeout.signal
  return {
    what,
    send: () =>
      send(url, {
        method: options.method,
        headers: options.headers ?? {},
        body: options.body ?? null,
        dispatcher: agentFor(options),
        signal,
      }),
    toHttpError(error: unknown): HttpError {
      if (error instanceof HttpError) return error
      if (options.signal?.aborted) return new HttpError('aborted', `${what} was cancelled`, false)
      if (timeout.signal.aborted)
        return new HttpError('timeout', `${what} took longer than ${options.timeoutMs} ms`, true)
      return faultOf(error, what)
    },
    end: () => clearTimeout(timer),
  }
}

/** Ends every pooled connection. The next request makes a new pool. */
export async function closeConnections(): Promise<void> {
  const closing = [...agents.values()]
  agents.clear()
  await Promise.all(closing.map((agent) => agent.destroy()))
}

type Body = AsyncIterable<Uint8Array> & { destroy(): unknown }

/** Reads at most `maxBytes` of a body; later bytes are not read. */
async function readAll(body: Body, maxBytes: number): Promise<{ body: Uint8Array; isCut: boolean }> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size <= maxBytes) continue
    body.destroy()
    return { body: Buffer.concat(chunks).subarray(0, maxBytes), isCut: true }
  }
  return { body: Buffer.concat(chunks, size), isCut: false }
}

/**
 * Returns the pool of connections, which checks addresses, for a policy, authority and certificate.
 */
function agentFor({ allow: policy, ca, client }: Pick<HttpRequest, 'allow' | 'ca' | 'client'>): Agent {
  const name = `${policy} ${ca ?? ''} ${client?.cert ?? ''} ${client?.key ?? ''}`
  const known = agents.get(name)
  if (known) return known
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    lookup: guardedLookup(policy, refused),
    ...(ca !== undefined && { ca }),
    ...client,
  } as buildConnector.BuildOptions)
  const agent = new Agent({
    // Disables the pool's own timeouts, because a request has one time limit for everything.
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
    connect(options, callback) {
      connect(options, (...result) => {
        const [error, socket] = result
        if (error) return callback(error, null)
        if (!passes(policy, socket)) {
          socket.destroy()
          return callback(refused(options.hostname), null)
        }
        return callback(null, socket)
      })
    },
  })
  agents.set(name, agent)
  return agent
}

/** Whether the policy allows the reached address. The DNS lookup already removed refused ones. */
function passes(policy: AddressPolicy, socket: Socket): boolean {
  return socket.remoteAddress !== undefined && allows(policy, socket.remoteAddress)
}

function refused(what: string): HttpError {
  return new HttpError('refused_address', `${what}: Nightshift may not connect to this address`, false)
}

const connectCodes = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EADDRNOTAVAIL', 'EACCES'],
  ...['UND_ERR_CONNECT_TIMEOUT'],
])

/** Converts any error of an exchange to an HttpError. */
function faultOf(error: unknown, what: string): HttpError {
  const found = causesOf(error)
  const guard = found.find((cause) => cause instanceof HttpError)
  if (guard) return guard
  const code = found.map((cause) => cause.code).find((one) => typeof one === 'string')
  if (code && connectCodes.has(code)) return new HttpError('connect', `${what}: no connection (${code})`, true)
  if (error instanceof errors.InvalidArgumentError) {
    return new HttpError('protocol', `${what} is not a valid request`, false)
  }
  return new HttpError('protocol', `${what}: the response broke off or is not HTTP (${code ?? 'unknown'})`, true)
}

type Fault = { code?: unknown; cause?: unknown; errors?: unknown }

/**
 * Lists an error with its causes, also the errors in an AggregateError from several tried
 * addresses. Relies only on the shape of values, not on their classes.
 */
function causesOf(error: unknown, depth = 0): Fault[] {
  if (error === null || typeof error !== 'object' || depth > 5) return []
  const fault: Fault = error
  const inner = Array.isArray(fault.errors) ? fault.errors : []
  return [fault, ...inner.flatMap((one) => causesOf(one, depth + 1)), ...causesOf(fault.cause, depth + 1)]
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === '__proto__') continue
    result[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value
  }
  return result
}
