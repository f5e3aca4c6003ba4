import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { nameFaults } from '../../domain/schema-faults.ts'
import { nonceHeader } from '../../domain/start-nonce.ts'
import {
  type ChatRequest,
  type Completion,
  chatRequest,
  chunksOf,
  completionOf,
  conversationOf,
  messageOf,
  modelName,
} from './conversation.ts'
import { decide } from './decide.ts'
import { answerInMood, type Mood, mood } from './moods.ts'

const moodOrder = z.strictObject({ mood: mood.nullable(), times: z.number().int().positive().optional() })
const bodyBytes = 32 * 1024 * 1024
const rememberedRequests = 1000
const dripMs = 200

/**
 * One request in `GET /control/requests`. The list of requests proves that no committed response
 * was requested again.
 */
type ServedRequest = {
  at: string
  model: string
  mood: Mood | null
  protocol: 'native' | 'json'
  stream: boolean
  /** Identifies the request by its bytes, so that a prompt that was sent twice is visible. */
  digest: string
  status: number
  promptTokens: number
  completionTokens: number
  /** The number of characters of each of the last five messages. */
  messageSizes: number[]
}

type ServerState = {
  delayMs: number
  /** The last served requests. `total` counts all served requests. */
  served: ServedRequest[]
  total: number
  /** The behaviour (mood) that a request set, and how many more responses show the behaviour. */
  ordered: { mood: Mood; left: number } | null
}

/**
 * Serves chat completions from the decision table. `delayMs` imitates the time that a model takes.
 */
export function runbookServer(delayMs: number, nonce?: string): Server {
  const state: ServerState = { delayMs, served: [], total: 0, ordered: null }
  return createServer(async (request, response) => {
    const { method = 'GET' } = request
    const path = new URL(request.url!, 'http://runbook').pathname
    try {
      if (path === '/readyz' || path === '/livez') {
        if (nonce) response.setHeader(nonceHeader, nonce)
        response.end('ok\n')
        return
      }
      if (method === 'GET' && path === '/v1/models') {
        const model = { id: modelName, object: 'model', created: 0, owned_by: 'nightshift' }
        return json(response, 200, { object: 'list', data: [model] })
      }
      const text = await bodyOf(request)
      if (text === null) return refuse(response, 413, 'invalid_request_error', 'the request is larger than 32 MiB')
      if (method === 'POST' && path === '/v1/chat/completions') return await complete(state, text, response)
      return control(state, method, path, text, response)
    } catch (error) {
      if (!response.headersSent) refuse(response, 500, 'server_error', (error as Error).message)
      else response.destroy()
    }
  })
}

function takeMood(state: ServerState, model: string): Mood | null {
  const named = mood.safeParse(model.split(':')[1])
  if (named.success) return named.data
  if (!state.ordered) return null
  const { mood: current } = state.ordered
  if (--state.ordered.left <= 0) state.ordered = null
  return current
}

async function complete(state: ServerState, text: string, response: ServerResponse): Promise<void> {
  const parsed = chatRequest.safeParse(parse(text))
  if (!parsed.success) return refuse(response, 400, 'invalid_request_error', nameFaults(parsed.error))
  const request = parsed.data
  if (request.model.split(':')[0] !== modelName) {
    return refuse(response, 404, 'model_not_found', `there is no model ${request.model}; this is ${modelName}`)
  }
  const conversation = conversationOf(request)
  const current = takeMood(state, request.model)
  const entry: ServedRequest = {
    at: new Date().toISOString(),
    model: request.model,
    mood: current,
    protocol: conversation.protocol,
    stream: request.stream === true,
    digest: createHash('sha256').update(text).digest('hex'),
    status: 200,
    promptTokens: 0,
    completionTokens: 0,
    messageSizes: request.messages.slice(-5).map(({ content }) => content.length),
  }
  state.total++
  state.served.push(entry)
  if (state.served.length > rememberedRequests) state.served.shift()
  await sleep(state.delayMs)
  if (current === 'hang') return
  if (current === 'status_429' || current === 'status_500') {
    entry.status = current === 'status_429' ? 429 : 500
    if (current === 'status_429') response.setHeader('retry-after', '1')
    return refuse(
      response,
      entry.status,
      current === 'status_429' ? 'rate_limit_exceeded' : 'server_error',
      'as ordered',
    )
  }
  const decision = (current && answerInMood(current, conversation, plain(request))) ?? decide(conversation)
  const completion = completionOf(messageOf(decision, conversation, current), request.model, text)
  entry.promptTokens = completion.usage.prompt_tokens
  entry.completionTokens = completion.usage.completion_tokens
  await send(response, completion, request, current)
}

function order(state: ServerState, text: string, response: ServerResponse): void {
  const parsed = moodOrder.safeParse(parse(text))
  if (!parsed.success) {
    refuse(response, 400, 'invalid_request_error', nameFaults(parsed.error))
    return
  }
  const { mood: wanted, times = Number.POSITIVE_INFINITY } = parsed.data
  state.ordered = wanted && { mood: wanted, left: times }
  response.writeHead(204).end()
}

function control(state: ServerState, method: string, path: string, text: string, response: ServerResponse): void {
  const { total, served } = state
  if (method === 'GET' && path === '/control/requests') json(response, 200, { total, items: served })
  else if (method === 'POST' && path === '/control/mood') order(state, text, response)
  else refuse(response, 404, 'not_found', `there is no ${method} ${path}`)
}

async function send(
  response: ServerResponse,
  completion: Completion,
  request: ChatRequest,
  mood: Mood | null,
): Promise<void> {
  if (!request.stream) {
    const text = JSON.stringify(completion)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    if (mood === 'cut_body' || mood === 'cut_stream') return cutAfter(response, text.slice(0, text.length / 2))
    if (mood === 'slow_drip') for (const part of text.match(/[\s\S]{1,64}/g)!) await drip(response, part)
    else response.write(text)
    response.end()
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
  const events = chunksOf(completion, request.stream_options?.include_usage === true)
  for (const [i, event] of events.entries()) {
    const text = `data: ${JSON.stringify(event)}\n\n`
    // Cuts the stream in the middle of an event, as a dying server would.
    if ((mood === 'cut_stream' || mood === 'cut_body') && i === Math.floor(events.length / 2)) {
      return cutAfter(response, text.slice(0, text.length / 2))
    }
    if (mood === 'slow_drip') await drip(response, text)
    else response.write(text)
  }
  response.end('data: [DONE]\n\n')
}

async function drip(response: ServerResponse, text: string): Promise<void> {
  if (response.destroyed) return
  response.write(text)
  await sleep(dripMs)
}

/** Sends a piece of a response, and resets the connection when the piece was sent. */
function cutAfter(response: ServerResponse, text: string): void {
  response.write(text, () => response.socket?.resetAndDestroy())
}

/** Joins the texts of a request, for a mood that obeys any instruction in them. */
function plain({ messages }: ChatRequest): string {
  return messages
    .filter(({ role }) => role === 'user' || role === 'tool')
    .map(({ content }) => content)
    .join('\n')
}

async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request) {
    bytes += (part as Buffer).length
    if (bytes > bodyBytes) return null
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  json(response, status, { error: { message, type, param: null, code: type } })
}
