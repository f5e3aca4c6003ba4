import { z } from 'zod'
import type { ChatAnswer } from '../../domain/chat.ts'
import { ModelError } from './refused-request.ts'

const part = z.looseObject({ type: z.string().optional(), text: z.unknown().optional() })
const calledFunction = z.object({
  name: z.string(),
  arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
})
const tokens = z.number().nonnegative().catch(0)

/**
 * What we need of an answer. Servers differ in the rest: arguments as an object, content as parts, no usage at all. Fields with
 * reasoning only show that the model reasoned.
 */
const completion = z.object({
  model: z.string().catch('unknown'),
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish().catch(null),
        error: z.unknown().optional(),
        message: z.object({
          content: z.union([z.string(), z.array(z.union([z.string(), part]))]).nullish(),
          refusal: z.string().nullish().catch(null),
          tool_calls: z.array(z.object({ id: z.string().nullish().catch(null), function: calledFunction })).nullish(),
          function_call: calledFunction.nullish().catch(null),
          reasoning_content: z.unknown().optional(),
          reasoning: z.unknown().optional(),
          reasoning_details: z.unknown().optional(),
          thinking: z.unknown().optional(),
        }),
      }),
    )
    .min(1),
  usage: z
    .object({
      prompt_tokens: tokens,
      completion_tokens: tokens,
      reasoning_tokens: tokens.optional(),
      completion_tokens_details: z.object({ reasoning_tokens: tokens }).nullish().catch(null),
    })
    .nullish()
    .catch(null),
})

/** Servers have many words for an answer that met its limit. */
const cutWords = new Set(['length', 'max_tokens', 'model_length', 'max_output_tokens', 'token_limit'])
/** Words for an answer that the server gave up: the same request may go well later. */
const brokenWords = new Set(['error', 'abort', 'insufficient_system_resource', 'network_error', 'cancelled'])
const filterWords = new Set(['content_filter', 'sensitive', 'safety', 'prohibited_content'])

export type ReadAnswer = ChatAnswer & {
  /** The whole limit went into reasoning: nothing was said. */
  isSpentOnReasoning: boolean
}

/** Reads a whole body with status 200, or throws ModelError. Text of reasoning is in no field of what it gives. */
export function readAnswer(body: unknown, durationMs: number): ReadAnswer {
  const parsed = completion.safeParse(body)
  if (!parsed.success) {
    const place = parsed.error.issues[0]?.path.join('.') || 'the body'
    throw new ModelError('bad_answer', `the model server's answer is no chat completion, at ${place}`, {
      status: 200,
      retryable: true,
    })
  }
  const choice = parsed.data.choices[0]!
  const word = (choice.finish_reason ?? 'unknown').toLowerCase()
  const { refusal, tool_calls, function_call } = choice.message
  if (refusal || filterWords.has(word)) {
    throw new ModelError('refused', 'the model or its filter refused to answer', { status: 200, retryable: false })
  }
  if (brokenWords.has(word)) {
    const said = errorText(choice.error)
    const message = `the model server gave its answer up (${word})${said ? `: ${said}` : ''}`
    throw new ModelError('unavailable', message, { status: 200, retryable: true })
  }
  const content = textOf(choice.message.content)
  const calls = tool_calls ?? (function_call ? [{ id: null, function: function_call }] : [])
  const { usage } = parsed.data
  const reasoningTokens = usage?.completion_tokens_details?.reasoning_tokens ?? usage?.reasoning_tokens
  const finishReason = cutWords.has(word) ? 'length' : word
  const { reasoning_content, reasoning, reasoning_details, thinking } = choice.message
  const reasons =
    [reasoning_content, reasoning, reasoning_details, thinking].some(isSomething) || (reasoningTokens ?? 0) > 0
  return {
    content,
    toolCalls: calls.map((call, index) => ({
      id: call.id || `call_${index}`,
      name: call.function.name,
      arguments:
        typeof call.function.arguments === 'string'
          ? call.function.arguments
          : JSON.stringify(call.function.arguments ?? null),
    })),
    finishReason,
    usage: {
      promptTokens: usage?.prompt_tokens ?? 0,
      completionTokens: usage?.completion_tokens ?? 0,
      ...(reasoningTokens !== undefined && { reasoningTokens }),
    },
    model: parsed.data.model,
    durationMs,
    isSpentOnReasoning:
      finishReason === 'length' &&
      calls.length === 0 &&
      (isUnendedThought(content) || (content.trim() === '' && reasons)),
  }
}

/** The error in a body with status 200, as OpenRouter sends it once the provider has begun. Null for any other body. */
export function errorInBody(body: unknown): { status: number; text: string } | null {
  if (body === null || typeof body !== 'object') return null
  const { error, object, choices, code } = body as Record<string, unknown>
  if (Array.isArray(choices) && choices.length > 0) return null
  const isError = object === 'error' || (error !== null && error !== undefined)
  if (!isError) return null
  const status = Number((error as { code?: unknown } | null | undefined)?.code ?? code)
  return { status: status >= 400 && status <= 599 ? status : 502, text: JSON.stringify(body) }
}

/** Text of an answer. Of parts, those that are text: a part `thinking` or `reasoning` is not. */
function textOf(content: z.infer<typeof completion>['choices'][number]['message']['content']): string {
  if (typeof content === 'string') return content
  return (content ?? [])
    .map((each) => {
      if (typeof each === 'string') return each
      const isText = each.type === undefined || each.type === 'text' || each.type === 'output_text'
      return isText && typeof each.text === 'string' ? each.text : ''
    })
    .join('')
}

function isUnendedThought(content: string): boolean {
  return /^\s*(<think(ing)?>|\[THINK\])/i.test(content) && !/<\/think(ing)?>|\[\/THINK\]/i.test(content)
}

function isSomething(value: unknown): boolean {
  return (typeof value === 'string' && value.trim() !== '') || (Array.isArray(value) && value.length > 0)
}

function errorText(error: unknown): string {
  const message = (error as { message?: unknown } | null | undefined)?.message
  return typeof message === 'string' ? message.slice(0, 200) : ''
}
