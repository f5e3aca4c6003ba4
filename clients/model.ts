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
  /** Any chat-completions server, with or without a trailing `/v1`. */
  baseUrl: string
  /** May be empty: then no credential is sent. */
  apiKey: string
  timeoutMs?: number
  /** The longest silence of a begun answer; until it begins it has all of `timeoutMs`. */
  stallMs?: number
  maxAnswerBytes?: number
  allow?: AddressPolicy
  /** Where it is kept how the server wants its requests; by default in this client alone. */
  memory?: ShapeMemory
}

/** The lessons of a server, by model. Neither may throw: without a memory it is learned again. */
export type ShapeMemory = {
  recall(model: string): Promise<RequestShape>
  keep(model: string, shape: RequestShape): Promise<void>
  /** What an answer showed that the server can do. */
  note?(model: string, seen: SeenAbilities): Promise<void>
  /** The name that the model gave itself in an answer. */
  name?(model: string, answeredAs: string): Promise<void>
}

export type ModelRequest = {
  messages: ChatMessage[]
  tools?: ChatTool[]
  temperature: number
  maxTokens: number
  /** How far the limit may grow where a model spends it on reasoning. */
  maxWithReasoning?: number
  model: string
  signal?: AbortSignal
  /** The step key: a server that knows idempotency bills one answer. */
  idempotencyKey?: string
  /** The schema that an answer in text has to keep, where the server can hold a model to one. */
  form?: Record<string, unknown>
  isOneCall?: boolean
  /** Called as the answer grows, at every piece. It must not throw. */
  onWriting?: (writing: Writing) => void
}

export type ModelClient = { complete(request: ModelRequest): Promise<ChatAnswer> }

/** Changes of one request; a server not content by then is not going to be. */
const maxCorrections = 8
/** Size of an answer without envelope. */
const maxAnswerBytes = 2_000_000
/** Bytes of a stream for each byte of an answer: every token comes in an envelope. */
const envelopeFactor = 16
/** After the end of an answer, so long the counts of tokens may take. */
const countsMs = 2_000

/**
 * Chat completions, streamed where the server streams: gives a whole answer or throws ModelError,
 * never a part. A refusal that names a parameter is learned from and asked again at once, a bounded
 * number of times; the workflow does all other retries.
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
        // Kept once the server is content with it, or complains of something else than the request.
        if (repeat > 0 && !(isRefused && outcome.refusal.status < 429)) await memory.keep(asked.model, shape)
        if (!next) {
          if (isRefused) {
            if (asked.tools && lacksTools(outcome.refusal)) await memory.note?.(asked.model, { tools: 'no' })
            throw refusedError(outcome, hide)
          }
          const { isSpentOnReasoning, ...answer } = outcome
          // This prompt left no room for more; the next is cut so that it does.
          if (isSpentOnReasoning && shape.headroom < 16) await memory.keep(asked.model, wider(shape))
          await memory.note?.(asked.model, seenIn(answer, isStreamed))
          await memory.name?.(asked.model, answer.model)
          return { ...answer, usage: addUsage(answer.usage, spent) }
        }
        if (!isRefused) {
          // Kept at once: the next try takes longer, and may be the next activity's.
          await memory.keep(asked.model, next)
          if (performance.now() - begunMs > timeoutMs / 2) throw spentOnReasoning()
          spent = addUsage(outcome.usage, spent)
        }
        shape = next
      }
    },
  }
}

/** What came of an exchange and is in no body. */
type Heard = { reasoning: number; thought: string }
type Server = { server: OpenAI; heard: Heard; hide: CredentialHider }

/** Length of the end of what is being written, which is what is shown. */
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
    // Null keeps the SDK from reading these out of the environment.
    organization: null,
    project: null,
    adminAPIKey: null,
    webhookSecret: null,
    maxRetries: 0,
    // Ours ends first; this one is only there because the SDK insists on one.
    timeout: timeoutMs + 10_000,
    logLevel: 'off',
    fetch: boundedFetch(options, { timeoutMs, heard }, onWriting),
  })
}

/**
 * One exchange. A refused request is answered, since it may be learned from; any other failure is
 * thrown.
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
  // A server that replays by key must not repeat the answer to a request of another shape.
  const key = asked.idempotencyKey && (repeat === 0 ? asked.idempotencyKey : `${asked.idempotencyKey}:${repeat}`)
  try {
    // `post` gives what our own `fetch` has put together; `create` would read the stream by itself.
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

/** An answer that is too large to read was made and counted all the same. */
function oversizedError({ message, status }: ModelError, bytes: Omit<Exchanged, 'said' | 'received'>): ModelError {
  const all = { ...bytes, said: maxAnswerBytes, received: maxAnswerBytes }
  const usage = boundUsage({ prompt: null, completion: null, reasoning: undefined }, all)
  return new ModelError('oversized', message, { status, retryable: false, usage })
}

/** The shape to ask with next, or null where what came stands. None is tried twice. */
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
  const message = 'the whole limit of the answer went into reasoning: it is asked again with a larger one'
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

/** `http://host:8000`, `…/`, `…/v1` and `…/v1/` are one server; another path's version stays. */
export function baseUrlOf(text: string): string {
  const trimmed = text.replace(/\/+$/, '')
  return /\/v\d+[a-z0-9]*(\/|$)/.test(trimmed.replace(/^https?:\/\/[^/]*/, '')) ? trimmed : `${trimmed}/v1`
}

/** An address as it may stand in a row: neither user nor query, where credentials are. */
export function serverName(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl)
  return `${origin}${pathname.replace(/\/+$/, '')}`
}

/**
 * The SDK's way to the network: whole, bounded answers through the address guard. A stream is put
 * together here.
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
      // No telemetry of the SDK leaves, and an empty key means no credential.
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
        // The SDK reads a body as JSON by its type alone, and a stream has another one.
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

/** The text of a whole body, or of a stream the body that it stands for. */
async function readBody(answer: Opened, bounds: Bounds, onWriting: OnWriting): Promise<string> {
  if (isStream(answer)) return JSON.stringify(await readStreamed(answer, bounds, onWriting))
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of answer.pieces) {
    bytes += piece.byteLength
    if (bytes > bounds.maxBytes) {
      throw new ModelError('oversized', `the model server's answer is larger than ${bounds.maxBytes} bytes`, {
        retryable: false,
      })
    }
    pieces.push(piece)
  }
  const text = Buffer.concat(pieces).toString()
  if (answer.status !== 200 || !/^\s*data:/.test(text)) return text
  // A stream that its server called something else.
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
  const message = `the model server stopped in the middle of its answer: nothing came for ${stallMs / 1000} s after about ${pieces} tokens`
  return new ModelError('stalled', message, { status: 200, retryable: true })
}
