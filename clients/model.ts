import OpenAI from 'openai'
import {
  type ChatAnswer,
  type ChatMessage,
  type ChatTool,
  plainShape,
  type RequestShape,
  type SeenAbilities,
  type Writing,
} from '../domain/chat.ts'
import { type CredentialHider, hideKey } from '../domain/hidden-credentials.ts'
import type { AddressPolicy } from './address.ts'
import {
  causeIn,
  errorInBody,
  lacksTools,
  ModelError,
  modelErrorOf,
  type ReadAnswer,
  RefusedRequest,
  readAnswer,
  refusedError,
} from './chat/answer.ts'
import { answerTokens, requestBody } from './chat/body.ts'
import { correctedShape, readRefusal, withoutLimit } from './chat/refusal.ts'
import { type AnswerStream, readStream } from './chat/stream.ts'
import { addUsage, boundUsage, type Exchanged } from './chat/usage.ts'
import { receive } from './http.ts'

type ModelOptions = {
  /** The address of any chat-completions server, with or without `/v1` at the end. */
  baseUrl: string
  /** The key of the server. If the key is empty, no credential is sent. */
  apiKey: string
  timeoutMs?: number
  /**
   * The longest silence in milliseconds after a response began. Until it begins, `timeoutMs`
   * applies.
   */
  stallMs?: number
  maxAnswerBytes?: number
  allow?: AddressPolicy
  /**
   * Storage for the request shapes that the server accepts. By default, the shapes are kept only in
   * this client.
   */
  memory?: ShapeMemory
}

/**
 * Storage of the request shapes that a server accepts, by model. The functions must not throw.
 * Shapes that are not stored are found out again.
 */
export type ShapeMemory = {
  recall(model: string): Promise<RequestShape>
  keep(model: string, shape: RequestShape): Promise<void>
  /** Stores abilities of the server that one of its responses showed. */
  note?(model: string, seen: SeenAbilities): Promise<void>
  /** Stores the name that a response gives the model. */
  name?(model: string, answeredAs: string): Promise<void>
}

export type ModelRequest = {
  messages: ChatMessage[]
  tools?: ChatTool[]
  temperature: number
  maxTokens: number
  /** The highest token limit for a model that uses up its limit with reasoning. */
  maxWithReasoning?: number
  model: string
  signal?: AbortSignal
  /** The step key. A server that supports idempotency bills only one response for it. */
  idempotencyKey?: string
  /** The schema for a response in text, if the server can enforce one. */
  form?: Record<string, unknown>
  isOneCall?: boolean
  /** Called with every piece of the response. The function must not throw. */
  onWriting?: (writing: Writing) => void
}

export type ModelClient = { complete(request: ModelRequest): Promise<ChatAnswer> }

/** The most changes of one request. A server that refuses more shapes will accept none. */
const maxCorrections = 8
/** The most bytes of a response without its envelope. */
const maxAnswerBytes = 2_000_000
/** Bytes of a stream per byte of a response, because every token has an envelope. */
const envelopeFactor = 16
/** Milliseconds to wait for token counts after a response has ended. */
const countsMs = 2_000

/**
 * Requests chat completions, streamed if the server supports it. Returns a complete response or
 * throws ModelError, never a part. After a refusal that names a parameter, changes the request and
 * repeats it at once, a limited number of times. The workflow does all other retries.
 */
export function createModelClient(options: ModelOptions): ModelClient {
  const timeoutMs = options.timeoutMs ?? 300_000
  const memory = options.memory ?? ownMemory()
  const hide = hideKey(options.apiKey)
  return {
    async complete(asked) {
      let isStreamed = false
      const heard: Heard = { reasoning: 0, thought: '' }
      const server = openServer(options, { timeoutMs, heard }, (writing) => {
        isStreamed = true
        asked.onWriting?.(hideWritten(writing, hide))
      })
      let shape = await memory.recall(asked.model)
      const tried = new Set<string>()
      let spent: ChatAnswer['usage'] = { promptTokens: 0, completionTokens: 0 }
      const begunMs = performance.now()
      for (let repeat = 0; ; repeat += 1) {
        tried.add(JSON.stringify(shape))
        const outcome = await exchange({ server, heard, hide }, asked, shape, repeat)
        const next = repeat < maxCorrections ? nextShape(shape, outcome, asked, tried) : null
        const isRefused = outcome instanceof RefusedRequest
        // Stores the shape as soon as the server accepts it, or fails for another reason than the
        // shape.
        if (repeat > 0 && !(isRefused && outcome.refusal.status < 429)) await memory.keep(asked.model, shape)
        if (!next) {
          if (isRefused) {
            if (asked.tools && lacksTools(outcome.refusal)) await memory.note?.(asked.model, { tools: 'no' })
            throw refusedError(outcome, hide)
          }
          const { isSpentOnReasoning, ...answer } = outcome
          // Stores a wider shape. This prompt left no room for it; the next prompt is cut to leave
          // some.
          if (isSpentOnReasoning && shape.headroom < 16) await memory.keep(asked.model, wider(shape))
          await memory.note?.(asked.model, seenIn(answer, isStreamed))
          await memory.name?.(asked.model, answer.model)
          return { ...answer, usage: addUsage(answer.usage, spent) }
        }
        if (!isRefused) {
          // Stores the shape at once, because the next try takes longer, and may be made by the
          // next activity.
          await memory.keep(asked.model, next)
          if (performance.now() - begunMs > timeoutMs / 2) throw spentOnReasoning()
          spent = addUsage(outcome.usage, spent)
        }
        shape = next
      }
    },
  }
}

/** Data of an exchange that no response body contains. */
type Heard = { reasoning: number; thought: string }
type Server = { server: OpenAI; heard: Heard; hide: CredentialHider }

/** Characters at the end of a growing response that are kept to show them. */
const maxWritten = 10_000

function hideWritten({ content, call, ...rest }: Writing, hide: CredentialHider): Writing {
  const safe = (text: string) => hide.text(text.slice(-maxWritten))
  return { ...rest, content: safe(content), call: call && { name: safe(call.name), arguments: safe(call.arguments) } }
}

function openServer(
  options: ModelOptions,
  { timeoutMs, heard }: { timeoutMs: number; heard: Heard },
  onWriting: OnWriting,
): OpenAI {
  return new OpenAI({
    baseURL: baseUrlOf(options.baseUrl),
    apiKey: options.apiKey || 'none',
    // Passes null, so that the SDK does not read these settings from the environment.
    organization: null,
    project: null,
    adminAPIKey: null,
    webhookSecret: null,
    maxRetries: 0,
    // Exceeds this client's own timeout, which ends first; the SDK requires a timeout too.
    timeout: timeoutMs + 10_000,
    logLevel: 'off',
    fetch: boundedFetch(options, { timeoutMs, heard }, onWriting),
  })
}

/**
 * Makes one exchange. Returns a refusal, because another shape may be accepted. Throws any other
 * failure.
 */
async function exchange(
  { server, heard, hide }: Server,
  asked: ModelRequest,
  shape: RequestShape,
  repeat: number,
): Promise<ReadAnswer | RefusedRequest> {
  heard.reasoning = 0
  heard.thought = ''
  const begunMs = performance.now()
  const body = requestBody(shape, asked)
  const bytes = {
    request: Buffer.byteLength(JSON.stringify(body)),
    prompt: Buffer.byteLength(JSON.stringify([body.messages, body.tools])),
    maxTokens: shape.limit === 'none' ? 0 : answerTokens(shape, asked.maxTokens, asked.maxWithReasoning),
  }
  // Changes the key together with the shape: a server that replays by key must not repeat the
  // response to a request of another shape.
  const key = asked.idempotencyKey && (repeat === 0 ? asked.idempotencyKey : `${asked.idempotencyKey}:${repeat}`)
  try {
    // Uses `post`, which returns the body that `boundedFetch` assembled. `create` would try to read
    // a stream.
    const answer: unknown = await server.post('/chat/completions', {
      body,
      signal: asked.signal,
      headers: key ? { 'Idempotency-Key': key } : {},
    })
    const fault = errorInBody(answer)
    if (fault) return new RefusedRequest(readRefusal(fault.status, fault.text), {})
    return readAnswer(hide.value(answer), Math.round(performance.now() - begunMs), {
      ...bytes,
      reasoning: heard.reasoning,
      thought: hide.text(heard.thought),
    })
  } catch (error) {
    const own = causeIn(error, ModelError)
    if (own?.code === 'oversized') throw oversizedError(own, bytes)
    if (own) throw own
    const refused = causeIn(error, RefusedRequest)
    if (refused) return refused
    const failure = modelErrorOf(error)
    throw failure.code === 'oversized' ? oversizedError(failure, bytes) : failure
  }
}

/**
 * Makes the error for a response that is too large to read. It has an estimate of the response's
 * tokens, because these tokens still cost money.
 */
function oversizedError({ message, status }: ModelError, bytes: Omit<Exchanged, 'said' | 'received'>): ModelError {
  const all = { ...bytes, said: maxAnswerBytes, received: maxAnswerBytes }
  const usage = boundUsage({ prompt: null, completion: null, reasoning: undefined }, all)
  return new ModelError('oversized', message, { status, retryable: false, usage })
}

/** Returns the shape for the next request. Null if no untried shape is left. */
function nextShape(
  shape: RequestShape,
  outcome: ReadAnswer | RefusedRequest,
  asked: ModelRequest,
  tried: ReadonlySet<string>,
): RequestShape | null {
  const limit = answerTokens(shape, asked.maxTokens, asked.maxWithReasoning)
  if (!(outcome instanceof RefusedRequest)) {
    if (!outcome.isSpentOnReasoning || shape.headroom >= 16) return null
    const next = wider(shape)
    return answerTokens(next, asked.maxTokens, asked.maxWithReasoning) > limit ? next : null
  }
  const next = correctedShape(shape, outcome.refusal, limit)
  if (next === null || !tried.has(JSON.stringify(next))) return next
  return next.limit === shape.limit ? null : withoutLimit(shape)
}

function seenIn({ toolCalls, usage }: ChatAnswer, isStreamed: boolean): SeenAbilities {
  return {
    ...(toolCalls.length > 0 && { tools: 'yes' }),
    ...(toolCalls.length > 1 && { parallel: 'yes' }),
    ...(!usage.isAssumed && { usage: 'yes' }),
    ...(isStreamed && { streaming: 'yes' }),
  }
}

function wider(shape: RequestShape): RequestShape {
  return { ...shape, headroom: shape.headroom * 4 }
}

function spentOnReasoning(): ModelError {
  const message = 'reasoning used the whole token limit of the response, so the request is repeated with a larger limit'
  return new ModelError('bad_answer', message, { status: 200, retryable: true })
}

function ownMemory(): ShapeMemory {
  const shapes = new Map<string, RequestShape>()
  return {
    recall: async (model) => shapes.get(model) ?? plainShape,
    keep: async (model, shape) => {
      shapes.set(model, shape)
    },
  }
}

/**
 * Normalizes a server's address: `http://host:8000`, `…/`, `…/v1` and `…/v1/` are one server. Keeps
 * a version in another path.
 */
export function baseUrlOf(text: string): string {
  const trimmed = text.replace(/\/+$/, '')
  return /\/v\d+[a-z0-9]*(\/|$)/.test(trimmed.replace(/^https?:\/\/[^/]*/, '')) ? trimmed : `${trimmed}/v1`
}

/**
 * Returns a server's address as it may be stored in a row: without user and query, which may
 * contain credentials.
 */
export function serverName(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/**
 * Makes the `fetch` for the SDK, which returns complete, limited responses and checks addresses.
 * Assembles streams.
 */
function boundedFetch(
  options: ModelOptions,
  { timeoutMs, heard }: { timeoutMs: number; heard: Heard },
  onWriting: OnWriting,
) {
  const maxBytes = options.maxAnswerBytes ?? maxAnswerBytes
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const headers: Record<string, string> = {}
    for (const [name, value] of new Headers(init?.headers)) {
      // Removes the SDK's telemetry headers, and the credential if the key is empty.
      if (name.startsWith('x-stainless-') || (name === 'authorization' && options.apiKey === '')) continue
      headers[name] = value
    }
    const stall = new AbortController()
    const given = init?.signal ?? undefined
    const asked = {
      method: 'POST',
      url: String(input instanceof Request ? input.url : input),
      headers,
      body: String(init?.body ?? ''),
      timeoutMs,
      maxBytes: maxBytes * envelopeFactor,
      allow: options.allow ?? 'private',
      signal: given ? AbortSignal.any([given, stall.signal]) : stall.signal,
    } as const
    return await receive(asked, async (answer) => {
      const body = await readBody(answer, { maxBytes, stall, stallMs: options.stallMs ?? timeoutMs, heard }, onWriting)
      if (answer.status < 200 || answer.status > 299) {
        throw new RefusedRequest(readRefusal(answer.status, body), answer.headers)
      }
      const isEmpty = answer.status === 204 || answer.status === 205
      return new Response(isEmpty ? null : body, {
        status: answer.status,
        // Sets the type of JSON, by which the SDK parses a body. A stream has another type.
        headers: { ...answer.headers, 'content-type': 'application/json' },
      })
    })
  }
}

type OnWriting = (writing: Writing) => void
type Opened = Parameters<Parameters<typeof receive>[1]>[0]
type Bounds = { maxBytes: number; stall: AbortController; stallMs: number; heard: Heard }

function isStream({ status, headers }: Opened): boolean {
  return status === 200 && (headers['content-type'] ?? '').includes('event-stream')
}

/** Returns the text of a complete body, or the body that was assembled from a stream. */
async function readBody(answer: Opened, bounds: Bounds, onWriting: OnWriting): Promise<string> {
  if (isStream(answer)) return JSON.stringify(await readStreamed(answer, bounds, onWriting))
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of answer.pieces) {
    bytes += piece.byteLength
    if (bytes > bounds.maxBytes) {
      throw new ModelError('oversized', `the model server's response is larger than ${bounds.maxBytes} bytes`, {
        retryable: false,
      })
    }
    pieces.push(piece)
  }
  const text = Buffer.concat(pieces).toString()
  if (answer.status !== 200 || !/^\s*data:/.test(text)) return text
  // Assembles a stream that was sent with a wrong content type.
  const stream = readStream(bounds.maxBytes)
  stream.feed(text)
  bounds.heard.reasoning = stream.reasoningBytes()
  bounds.heard.thought = stream.thought()
  return JSON.stringify(stream.whole())
}

async function readStreamed(answer: Opened, bounds: Bounds, onWriting: OnWriting): Promise<unknown> {
  const stream = readStream(bounds.maxBytes)
  const decoder = new TextDecoder()
  let timer: NodeJS.Timeout | undefined
  const within = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => bounds.stall.abort(), ms)
  }
  try {
    for await (const piece of answer.pieces) {
      if (!stream.feed(decoder.decode(piece, { stream: true }))) continue
      if (stream.isDone()) break
      within(stream.isEnded() ? countsMs : bounds.stallMs)
      onWriting(stream.writing())
    }
  } catch (error) {
    if (!bounds.stall.signal.aborted) throw error
    if (!stream.isEnded()) throw stalled(stream, bounds.stallMs)
  } finally {
    clearTimeout(timer)
  }
  bounds.heard.reasoning = stream.reasoningBytes()
  bounds.heard.thought = stream.thought()
  return stream.whole()
}

function stalled(stream: AnswerStream, stallMs: number): ModelError {
  const { pieces } = stream.writing()
  const message = `the model server stopped in the middle of its response: nothing arrived for ${stallMs / 1000} s after about ${pieces} tokens`
  return new ModelError('stalled', message, { status: 200, retryable: true })
}
