import { createParser } from 'eventsource-parser'
import { z } from 'zod'
import type { Writing } from '../../domain/chat.ts'
import { errorInBody, ModelError, RefusedRequest } from './answer.ts'
import { readRefusal } from './refusal.ts'

/** Assembles a streamed response into the body that the same server would send at once. */

const text = z.string().nullish().catch(null)
const calledPiece = z.object({
  index: z.number().int().nonnegative().nullish().catch(null),
  id: text,
  function: z
    .object({
      name: text,
      arguments: z
        .union([z.string(), z.record(z.string(), z.unknown())])
        .nullish()
        .catch(null),
    })
    .catch({ name: null, arguments: null }),
})
const deltaShape = z.looseObject({
  content: z.unknown().optional(),
  refusal: text,
  tool_calls: z.array(calledPiece).nullish().catch(null),
  function_call: calledPiece.shape.function.nullish().catch(null),
})
const chunkShape = z.looseObject({
  model: text,
  choices: z
    .array(
      z.looseObject({
        delta: deltaShape.nullish().catch(null),
        message: deltaShape.nullish().catch(null),
        finish_reason: text,
        error: z.unknown().optional(),
      }),
    )
    .nullish()
    .catch(null),
  usage: z.unknown().optional(),
  error: z.unknown().optional(),
})

type Call = { index: number | null; id: string; name: string; arguments: string }

type Assembly = {
  model: string | null
  content: string
  calls: Call[]
  refusal: string
  /** Number of bytes of the model's reasoning. */
  reasoning: number
  /** The end of the reasoning, which may contain a call if the response has nothing else. */
  thought: string
  finish: string | null
  usage: unknown
  fault: unknown
  characters: number
  pieces: number
  isDone: boolean
}

/** The token count up to now, which vLLM and others send if they are configured to. */
const runningCount = z.object({ completion_tokens: z.number().int().nonnegative() })
/** Characters at the end of the reasoning that are kept until the response has been read. */
const maxThought = 16_000
const reasoningFields = ['reasoning_content', 'reasoning', 'reasoning_details', 'thinking'] as const

export type AnswerStream = {
  /**
   * Takes the next piece of the body. True if the piece contains a part of the response; false for
   * a keep-alive.
   */
  feed(piece: string): boolean
  /** True after the server reported how the response ended. Only token counts may follow. */
  isEnded(): boolean
  /** True if the stream is complete. */
  isDone(): boolean
  writing(): Writing
  reasoningBytes(): number
  /** Returns the end of the model's reasoning. */
  thought(): string
  /**
   * Returns the complete response as one body. Throws if the stream ended early or contained an
   * error.
   */
  whole(): unknown
}

/**
 * Reads a streamed response. `maxCharacters` limits text, arguments and reasoning together. A
 * longer response throws ModelError `oversized`.
 */
export function readStream(maxCharacters: number): AnswerStream {
  const state: Assembly = {
    model: null,
    content: '',
    calls: [],
    refusal: '',
    reasoning: 0,
    thought: '',
    finish: null,
    usage: null,
    fault: null,
    characters: 0,
    pieces: 0,
    isDone: false,
  }
  const parser = createParser({
    onEvent: ({ data }) => take(state, data),
    // Reads an error in a field named `error`, which older versions of llama.cpp send.
    onError: ({ field, value }) => {
      if (field === 'error' && value) take(state, `{"error":${value}}`)
    },
  })
  return {
    feed(piece) {
      const before = state.pieces
      parser.feed(piece)
      if (state.characters > maxCharacters) throw tooLargeError()
      return state.pieces > before || state.finish !== null || state.isDone
    },
    isEnded: () => state.finish !== null,
    isDone: () => state.isDone,
    reasoningBytes: () => state.reasoning,
    thought: () => state.thought,
    writing: () => ({
      pieces: state.pieces,
      content: state.content,
      call: state.calls.at(-1) ?? null,
      counted: runningCount.safeParse(state.usage).data?.completion_tokens ?? null,
    }),
    whole() {
      parser.reset({ consume: true })
      return wholeOf(state)
    },
  }
}

function tooLargeError(): ModelError {
  return new ModelError('oversized', 'the response of the model server is too large', { status: 200, retryable: false })
}

function take(state: Assembly, data: string): void {
  if (data.trim() === '[DONE]') {
    state.isDone = true
    return
  }
  const json = parsed(data)
  if (json === undefined) throw brokenOff('a part of the stream is not JSON')
  const fault = errorInBody(json)
  if (fault) throw new RefusedRequest(readRefusal(fault.status, fault.text), {})
  const chunk = chunkShape.safeParse(json).data
  if (!chunk) return
  state.model ??= chunk.model ?? null
  if (chunk.usage !== null && chunk.usage !== undefined) state.usage = chunk.usage
  const choice = chunk.choices?.[0]
  if (!choice) return
  if (choice.finish_reason) state.finish = choice.finish_reason
  state.fault ??= choice.error ?? chunk.error ?? null
  // Accepts a complete message as a piece, which some servers send as the last piece.
  const delta = choice.delta ?? choice.message
  if (delta) takeDelta(state, delta)
}

function takeDelta(state: Assembly, delta: z.infer<typeof deltaShape>): void {
  const before = state.characters
  const said = textOf(delta.content)
  state.content += said
  state.refusal += delta.refusal ?? ''
  state.characters += said.length + (delta.refusal ?? '').length
  for (const field of reasoningFields) {
    const length = lengthOf(delta[field])
    state.reasoning += bytesOf(delta[field])
    if (typeof delta[field] === 'string') state.thought = `${state.thought}${delta[field]}`.slice(-maxThought)
    state.characters += length
  }
  for (const piece of delta.tool_calls ?? []) takeCall(state, piece)
  if (delta.function_call) takeCall(state, { index: 0, id: null, function: delta.function_call })
  if (state.characters > before) state.pieces += 1
}

/**
 * Finds the call that a piece continues. Pieces name their call by index, and another index is
 * another call, whatever its id. If a server uses one index for all calls, or no index, a new call
 * begins with another id, or with a name or complete object after complete arguments.
 */
function takeCall(state: Assembly, piece: z.infer<typeof calledPiece>): void {
  const { calls } = state
  const name = piece.function.name ?? ''
  const given = piece.function.arguments ?? ''
  const addition = typeof given === 'string' ? given : JSON.stringify(given)
  const id = piece.id ?? ''
  const index = piece.index ?? null
  const sameId = id === '' ? undefined : calls.findLast((each) => each.id === id)
  const known =
    index === null ? (sameId ?? calls.at(-1)) : calls.findLast((each) => each.index === index && isSame(each.id, id))
  let call = known && isSame(known.id, id) && !beginsAnother(known, name, addition) ? known : undefined
  if (!call) {
    call = { index, id, name: '', arguments: '' }
    calls.push(call)
  }
  if (call.id === '') call.id = id
  // Joins a name in pieces. Some servers repeat the name with each piece of the arguments.
  if (call.name !== name && call.arguments === '') call.name += name
  call.arguments += addition
  state.characters += addition.length + name.length
}

const isSame = (known: string, id: string): boolean => known === '' || id === '' || known === id

function beginsAnother(known: Call, name: string, addition: string): boolean {
  if (!isWholeObject(known.arguments)) return false
  return isWholeObject(addition) || (name !== '' && (name !== known.name || addition.trim() !== ''))
}

const isWholeObject = (text: string): boolean => text.trimStart().startsWith('{') && parsed(text) !== undefined

function wholeOf(state: Assembly): unknown {
  const { model, content, calls, refusal, finish, usage, fault, isDone } = state
  if (finish === null && !isDone) throw brokenOff('the response broke off before its end')
  return {
    model: model ?? undefined,
    choices: [
      {
        finish_reason: finish,
        ...(fault !== null && { error: fault }),
        message: {
          content,
          refusal: refusal || null,
          tool_calls: calls.map((call) => ({ id: call.id, function: { name: call.name, arguments: call.arguments } })),
          ...(state.reasoning > 0 && { reasoning: 'left out' }),
        },
      },
    ],
    usage,
  }
}

function brokenOff(what: string): ModelError {
  return new ModelError('unavailable', `the model server: ${what}`, { status: 200, retryable: true })
}

/** Returns the text of a piece. Takes only parts with text, as for a complete response. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: { type?: unknown; text?: unknown } | null) => {
      const isText = part?.type === undefined || part.type === 'text' || part.type === 'output_text'
      return isText && typeof part?.text === 'string' ? part.text : ''
    })
    .join('')
}

const bytesOf = (value: unknown): number =>
  lengthOf(value) === 0 ? 0 : Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value))

function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  return Array.isArray(value) && value.length > 0 ? JSON.stringify(value).length : 0
}

function parsed(given: string): unknown {
  try {
    return JSON.parse(given)
  } catch {
    return undefined
  }
}
