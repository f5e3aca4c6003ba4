import OpenAI, { APIError } from 'openai'
import { z } from 'zod'
import type { ChatAnswer, ChatMessage, ChatTool } from '../domain/chat.ts'
import type { AddressPolicy } from './address.ts'
import { HttpError, request } from './http.ts'
import { ModelError } from './model-error.ts'
import { retryAfterMs } from './retry-after.ts'

type ModelOptions = {
  /** Any chat-completions server, with or without a trailing `/v1`. */
  baseUrl: string
  /** May be empty: then no credential is sent. */
  apiKey: string
  timeoutMs?: number
  maxAnswerBytes?: number
  allow?: AddressPolicy
}

export type ModelRequest = {
  messages: ChatMessage[]
  tools?: ChatTool[]
  temperature: number
  maxTokens: number
  model: string
  signal?: AbortSignal
  /** The step key: a server that knows idempotency bills one answer. */
  idempotencyKey?: string
}

export type ModelClient = { complete(request: ModelRequest): Promise<ChatAnswer> }

/** What we need of an answer. Servers differ in the rest: arguments as an object, content as parts, no usage at all. */
const completion = z.object({
  model: z.string().catch('unknown'),
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({
          content: z.union([z.string(), z.array(z.looseObject({ text: z.string().optional() }))]).nullish(),
          refusal: z.string().nullish(),
          tool_calls: z
            .array(
              z.object({
                id: z.string().nullish(),
                function: z.object({
                  name: z.string(),
                  arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
                }),
              }),
            )
            .nullish(),
        }),
      }),
    )
    .min(1),
  usage: z
    .object({ prompt_tokens: z.number().catch(0), completion_tokens: z.number().catch(0) })
    .nullish()
    .catch(null),
})

/**
 * Chat completions, one request per call: retrying is the workflow's business. Gives a whole answer or throws ModelError;
 * never part of one, since the body is complete before anybody reads it.
 */
export function createModelClient(options: ModelOptions): ModelClient {
  const timeoutMs = options.timeoutMs ?? 300_000
  const client = new OpenAI({
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
    fetch: boundedFetch(options, timeoutMs),
  })

  return {
    async complete(asked) {
      const begunMs = performance.now()
      let answer: unknown
      try {
        answer = await client.chat.completions.create(
          {
            model: asked.model,
            messages: asked.messages,
            temperature: asked.temperature,
            max_tokens: asked.maxTokens,
            ...(asked.tools && asked.tools.length > 0 ? { tools: asked.tools } : {}),
          },
          {
            signal: asked.signal,
            headers: asked.idempotencyKey ? { 'Idempotency-Key': asked.idempotencyKey } : {},
          },
        )
      } catch (error) {
        throw modelErrorOf(error, options.apiKey)
      }
      return readAnswer(answer, Math.round(performance.now() - begunMs))
    },
  }
}

/** `http://host:8000`, `…/`, `…/v1` and `…/v1/` are the same server; a path with a version of its own is left alone. */
export function baseUrlOf(text: string): string {
  const trimmed = text.replace(/\/+$/, '')
  return /\/v\d+[a-z0-9]*(\/|$)/.test(trimmed.replace(/^https?:\/\/[^/]*/, '')) ? trimmed : `${trimmed}/v1`
}

/** The SDK's way to the network: whole answers, bounded, through the address guard. */
function boundedFetch(options: ModelOptions, timeoutMs: number) {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const headers: Record<string, string> = {}
    for (const [name, value] of new Headers(init?.headers)) {
      // The SDK's telemetry is nobody's business, and an empty key means no credential.
      if (name.startsWith('x-stainless-') || (name === 'authorization' && options.apiKey === '')) continue
      headers[name] = value
    }
    const answer = await request({
      method: 'POST',
      url: String(input instanceof Request ? input.url : input),
      headers,
      body: String(init?.body ?? ''),
      timeoutMs,
      maxBytes: options.maxAnswerBytes ?? 2_000_000,
      allow: options.allow ?? 'private',
      signal: init?.signal ?? undefined,
    })
    const isEmpty = answer.status === 204 || answer.status === 205 || answer.status === 304
    return new Response(isEmpty ? null : Buffer.from(answer.body), {
      status: Math.min(Math.max(answer.status, 200), 599),
      headers: answer.headers,
    })
  }
}

function readAnswer(answer: unknown, durationMs: number): ChatAnswer {
  const parsed = completion.safeParse(answer)
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') || 'the body'
    throw new ModelError('bad_answer', `the model server's answer is no chat completion, at ${place}`, {
      status: 200,
      retryable: true,
    })
  }
  const choice = parsed.data.choices[0]!
  const finishReason = choice.finish_reason ?? 'unknown'
  const { content, refusal, tool_calls } = choice.message
  if (refusal || finishReason === 'content_filter') {
    throw new ModelError('refused', 'the model or its filter refused to answer', { status: 200, retryable: false })
  }
  return {
    content: typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''),
    toolCalls: (tool_calls ?? []).map((call, index) => ({
      id: call.id || `call_${index}`,
      name: call.function.name,
      arguments:
        typeof call.function.arguments === 'string'
          ? call.function.arguments
          : JSON.stringify(call.function.arguments ?? null),
    })),
    finishReason,
    usage: {
      promptTokens: parsed.data.usage?.prompt_tokens ?? 0,
      completionTokens: parsed.data.usage?.completion_tokens ?? 0,
    },
    model: parsed.data.model,
    durationMs,
  }
}

function modelErrorOf(error: unknown, apiKey: string): ModelError {
  const network = httpErrorIn(error)
  if (network) return networkError(network)
  if (error instanceof APIError && error.status !== undefined) {
    const headers: Record<string, string> = Object.fromEntries((error.headers as Headers | undefined) ?? [])
    const said = lineOf(error, apiKey)
    const should = headers['x-should-retry']
    const [code, retryable] = codeOf(error.status, `${error.code ?? ''} ${error.type ?? ''} ${said}`)
    return new ModelError(code, `the model server answered ${error.status}${said ? `: ${said}` : ''}`, {
      status: error.status,
      retryAfterMs: retryAfterMs(headers, Date.now()),
      retryable: should === 'true' ? true : should === 'false' ? false : retryable,
    })
  }
  if (error instanceof OpenAI.APIUserAbortError) {
    return new ModelError('aborted', 'the call of the model was cancelled', { retryable: false })
  }
  if (error instanceof SyntaxError) {
    return new ModelError('bad_answer', "the model server's answer is not JSON", { status: 200, retryable: true })
  }
  return new ModelError('unavailable', 'the model server cannot be reached', { retryable: true })
}

function networkError(error: HttpError): ModelError {
  switch (error.code) {
    case 'timeout':
      return new ModelError('timeout', error.message, { retryable: true })
    case 'too_large':
      return new ModelError('oversized', error.message, { retryable: false })
    case 'aborted':
      return new ModelError('aborted', 'the call of the model was cancelled', { retryable: false })
    default:
      return new ModelError('unavailable', error.message, { retryable: error.retryable })
  }
}

function codeOf(status: number, said: string): [ModelError['code'], boolean] {
  if (status === 401 || status === 403) return ['unauthorised', false]
  if (status === 408) return ['timeout', true]
  if (status === 429) return ['rate_limited', true]
  if (status === 409 || status >= 500) return ['unavailable', true]
  const isTooLong =
    /context[_ ](length|window|size)|maximum context|exceed\S* (the )?(available )?context|too many tokens|prompt is too long/i
  return [isTooLong.test(said) || status === 413 ? 'context_too_long' : 'bad_request', false]
}

/** One line of what the server said, without the key and without anything that moves a terminal. */
function lineOf(error: APIError, apiKey: string): string {
  const inner = (error.error as { message?: unknown } | undefined)?.message
  const text = typeof inner === 'string' ? inner : error.message.replace(/^\d+ /, '')
  const safe = apiKey.length >= 4 ? text.replaceAll(apiKey, '[redacted]') : text
  return safe
    .slice(0, 200)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
}

function httpErrorIn(error: unknown, depth = 0): HttpError | null {
  if (error instanceof HttpError) return error
  return error instanceof Error && depth < 5 ? httpErrorIn(error.cause, depth + 1) : null
}
