import { createHash } from 'node:crypto'
import { z } from 'zod'
import { verificationOutcomes } from '../../domain/envelope.ts'
import type { OperatorTurn } from './facts.ts'
import type { Mood } from './moods.ts'
import { writeCalls } from './written-calls.ts'

/**
 * The part of a chat-completions request that the decision table reads. Unknown fields are ignored.
 */
const toolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })
const message = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.array(z.object({ text: z.string().default('') })), z.null()])
    .optional()
    .transform((content) => (Array.isArray(content) ? content.map(({ text }) => text).join('') : (content ?? ''))),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().optional(),
})
export const chatRequest = z.object({
  model: z.string(),
  messages: z.array(message).min(1),
  tools: z
    .array(
      z.object({
        function: z.object({
          name: z.string(),
          parameters: z.looseObject({ properties: z.record(z.string(), z.unknown()).optional() }).optional(),
        }),
      }),
    )
    .optional(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().optional() }).nullish(),
})
export type ChatRequest = z.infer<typeof chatRequest>

const labels = z.record(z.string(), z.string()).default({})
const incidentContext = z.object({
  incident: z.object({
    id: z.string(),
    type: z.string(),
    severity: z.string().default('critical'),
    title: z.string().default(''),
    resource: z.object({ kind: z.string(), id: z.string() }).nullish(),
    status: z.string().optional(),
  }),
  alerts: z
    .array(z.object({ labels, annotations: labels, status: z.string().default('firing') }))
    .nullish()
    .transform((alerts) => alerts ?? []),
  neighbours: z
    .array(z.object({ kind: z.string(), id: z.string() }))
    .default([])
    .catch([]),
  /** Jobs that the operator declared for the incident's resource. */
  jobs: z
    .array(z.object({ name: z.string(), about: z.string() }))
    .default([])
    .catch([]),
  hint: z.string().nullish(),
})
type IncidentContext = z.infer<typeof incidentContext>

const envelope = z.object({
  ok: z.boolean().default(true),
  data: z.unknown().optional(),
  error: z
    .object({
      code: z.string(),
      message: z.string().default(''),
      details: z.record(z.string(), z.unknown()).nullish(),
    })
    .nullish(),
  meta: z
    .object({
      seq: z.number().optional(),
      verification: z
        .object({ outcome: z.enum(verificationOutcomes), seq: z.number().optional() })
        .nullish()
        .catch(null),
    })
    .nullish()
    .transform((meta) => meta ?? {}),
})
export type ToolResult = z.infer<typeof envelope>

/**
 * Returns the `rule` of an error, or the code of an error without a `rule`. The nine codes name
 * only the kind of error.
 */
export function ruleOf(result: ToolResult | null): string | null {
  const rule = result?.error?.details?.rule
  return typeof rule === 'string' ? rule : (result?.error?.code ?? null)
}

/**
 * A tool call with its result. `turn` is the number of the model's response, which may contain
 * several calls.
 */
export type RunbookStep = { turn: number; tool: string; args: Record<string, unknown>; result: ToolResult | null }

export type Conversation = {
  protocol: 'native' | 'json'
  /** Whether a source collects logs. If not, logs are read on the device that writes them. */
  hasLogSource?: boolean
  context: IncidentContext | null
  hint: string | null
  steps: RunbookStep[]
  /** Messages that people sent to the run. */
  messages?: string[]
  /** The number of corrections that the model got since the last tool result. */
  corrections: number
}

/**
 * Reads a request into the input of the decision table. Never throws because of the messages'
 * content.
 */
export function conversationOf(request: ChatRequest): Conversation {
  const conversation: Conversation = {
    protocol: request.tools && request.tools.length > 0 ? 'native' : 'json',
    hasLogSource:
      request.tools?.some(
        ({ function: each }) => each.parameters?.properties?.labels !== undefined && each.name === 'search_logs',
      ) ?? false,
    context: null,
    hint: null,
    messages: [],
    steps: [],
    corrections: 0,
  }
  const waiting: (RunbookStep & { id: string | null })[] = []
  const known: Known = new Map()
  let turn = 0
  for (const { role, content, tool_calls, tool_call_id } of request.messages) {
    if (role === 'assistant') {
      turn++
      const calls = tool_calls?.length ? tool_calls.map(nativeCall) : jsonCalls(content)
      for (const call of calls) {
        const step = { turn, result: null, ...call }
        waiting.push(step)
        conversation.steps.push(step)
      }
    } else if (role === 'tool') {
      answer(waiting, known, { id: tool_call_id ?? null, text: content })
      conversation.corrections = 0
    } else if (role === 'user') {
      if (content.startsWith('CORRECTION:')) conversation.corrections++
      for (const { name, text } of dataBlocks(content)) {
        if (name === 'incident_context') {
          conversation.context ??= incidentContext.safeParse(parse(text)).data ?? null
          remember(known, 'the context', parse(text))
        } else if (name === 'hint') conversation.hint ??= text.trim() || null
        else if (name === 'person_message') conversation.messages?.push(text)
        else if (name === 'tool_result') {
          answer(waiting, known, { id: null, text })
          conversation.corrections = 0
        }
      }
    }
  }
  conversation.hint ??= conversation.context?.hint ?? null
  return conversation
}

/**
 * Lists the fenced blocks of a message. A block is between a line `<<<DATA name` and a line
 * `DATA>>>`.
 */
function dataBlocks(content: string): { name: string; text: string }[] {
  return [...content.matchAll(/^<<<DATA ([a-z_]+)[^\n]*\n([\s\S]*?)\n?^DATA>>>/gm)].map(([, name, text]) => ({
    name: name!,
    text: text!,
  }))
}

function nativeCall({ id, function: { name, arguments: text } }: z.infer<typeof toolCall>) {
  return { id, tool: name, args: (parse(text) ?? {}) as Record<string, unknown> }
}

const jsonCall = z.object({ tool_call: z.object({ name: z.string(), parameters: z.record(z.string(), z.unknown()) }) })

function jsonCalls(content: string) {
  const block = content.slice(content.indexOf('{'), content.lastIndexOf('}') + 1)
  const parsed = jsonCall.safeParse(parse(block))
  if (!parsed.success) return []
  const { name, parameters } = parsed.data.tool_call
  return [{ id: null, tool: name, args: parameters }]
}

/**
 * Assigns a result to its call. A result with an id belongs to the call with this id. A result
 * without an id belongs to the oldest call without a result.
 */
function answer(
  waiting: (RunbookStep & { id: string | null })[],
  known: Known,
  { id, text }: { id: string | null; text: string },
): void {
  const at = waiting.findIndex((step) => id === null || step.id === id)
  if (at < 0) return
  const [step] = waiting.splice(at, 1)
  const block = dataBlocks(text).find(({ name }) => name === 'tool_result')?.text ?? text
  const unreadable = { ok: false, error: { code: 'UNREADABLE', message: 'the result is not an envelope' }, meta: {} }
  const result: ToolResult = envelope.safeParse(parse(block)).data ?? unreadable
  step!.result = { ...result, data: completed(known, result.data) }
  remember(known, `seq ${result.meta.seq}`, step!.result.data)
}

/**
 * The known facts of each resource. A later message may write `rest` instead of fields that it does
 * not repeat.
 */
type Known = Map<string, Record<string, unknown>>

const nameIn = ({ id, vm, name, startsAt, pid, start_time: started }: Record<string, unknown>): unknown =>
  id ?? vm ?? (startsAt === undefined ? `${pid} ${started}` : `${name} ${startsAt}`)

function remember(known: Known, where: string, value: unknown): void {
  if (value === null || typeof value !== 'object') return
  if (!Array.isArray(value)) {
    // Keeps the first value of each field. A resource may occur several times in a message: as
    // itself, as a reference, or as its device's name.
    const key = `${where} ${nameIn(value as Record<string, unknown>)}`
    known.set(key, { ...value, ...known.get(key) })
  }
  for (const inner of Object.values(value)) remember(known, where, inner)
}

function completed(known: Known, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => completed(known, each))
  if (value === null || typeof value !== 'object') return value
  const { rest, ...told } = value as Record<string, unknown>
  const before =
    typeof rest === 'string' ? known.get(`${rest.replace('unchanged since ', '')} ${nameIn(told)}`) : undefined
  const inner = Object.entries(told).map(([key, each]) => [key, completed(known, each)])
  return { ...before, ...Object.fromEntries(inner) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const modelName = 'runbook-rules'
/** The fingerprint of this model. Every response contains it, and Nightshift stores it. */
export const systemFingerprint = 'rule-table, not a language model'

type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }
type ModelMessage = { role: 'assistant'; content: string | null; tool_calls?: ToolCall[] }
type TokenCount = { prompt_tokens: number; completion_tokens: number; total_tokens: number }
export type Completion = {
  id: string
  object: 'chat.completion'
  created: number
  model: string
  system_fingerprint: string
  choices: [{ index: 0; message: ModelMessage; logprobs: null; finish_reason: 'stop' | 'tool_calls' }]
  usage: TokenCount
}

/** Formats a decision as a message of its protocol. Two moods change the message's form. */
export function messageOf(decision: OperatorTurn, { protocol, steps }: Conversation, mood: Mood | null): ModelMessage {
  const content = protocol === 'json' ? jsonContent(decision, mood) : nativeContent(decision, mood)
  if (protocol === 'json' || !('calls' in decision)) return { role: 'assistant', content }
  const turn = (steps.at(-1)?.turn ?? 0) + 1
  if (mood === 'writes_calls') return { role: 'assistant', content: `I go on.\n${writeCalls(decision.calls, turn)}` }
  const tool_calls = decision.calls.map(({ tool, args }, i): ToolCall => {
    const json = JSON.stringify(args)
    // Makes an id from turn and call, because ids need to be unique only within a conversation.
    const id = `call_${createHash('sha256').update(`${turn}:${i}:${tool}:${json}`).digest('hex').slice(0, 24)}`
    return {
      id,
      type: 'function',
      function: { name: tool, arguments: mood === 'malformed_json' ? json.slice(0, -2) : json },
    }
  })
  return { role: 'assistant', content, tool_calls }
}

export function completionOf(message: ModelMessage, model: string, requestText: string): Completion {
  const prompt_tokens = tokens(requestText.length)
  const completion_tokens = tokens((message.content?.length ?? 0) + JSON.stringify(message.tool_calls ?? '').length)
  return {
    id: `chatcmpl-${createHash('sha256').update(requestText).digest('hex').slice(0, 24)}`,
    object: 'chat.completion',
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: systemFingerprint,
    choices: [{ index: 0, message, logprobs: null, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
    usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
  }
}

/**
 * Splits a response into stream events, with texts and arguments in pieces. Does not add `[DONE]`.
 */
export function chunksOf(completion: Completion, includeUsage: boolean): object[] {
  const { choices, usage, object: _, ...head } = completion
  const [{ message, finish_reason }] = choices
  const chunk = (delta: object, finish: string | null = null) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(includeUsage && { usage: null }),
  })
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(message.content ?? '').map((content) => chunk({ content })),
    ...(message.tool_calls ?? []).flatMap(({ id, type, function: { name, arguments: text } }, index) => [
      chunk({ tool_calls: [{ index, id, type, function: { name, arguments: '' } }] }),
      ...pieces(text).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    chunk({}, finish_reason),
    ...(includeUsage ? [{ ...head, object: 'chat.completion.chunk', choices: [], usage }] : []),
  ]
}

function nativeContent(decision: OperatorTurn, mood: Mood | null): string {
  if (mood === 'both_blocks') return `${decision.say} ${JSON.stringify({ final_answer: claim })}`
  return decision.say
}

function jsonContent(decision: OperatorTurn, mood: Mood | null): string {
  const block =
    'calls' in decision
      ? { tool_call: { name: decision.calls[0]!.tool, parameters: decision.calls[0]!.args } }
      : { final_answer: decision.answer }
  // Answers in plain text in moods in which the scripted model breaks the JSON protocol.
  if (mood && withoutProtocol.includes(mood)) return decision.say
  if (mood === 'both_blocks') return `${JSON.stringify(block)}\n${JSON.stringify({ final_answer: claim })}`
  return mood === 'malformed_json' ? JSON.stringify(block).slice(0, -2) : JSON.stringify(block)
}

const withoutProtocol: Mood[] = ['prose', 'nothing', 'oversized']
const claim = { summary: 'The incident is resolved.', confidence: 'high' }

function tokens(chars: number): number {
  return Math.ceil(chars / 4)
}

/**
 * Splits a text into about sixteen pieces. The reader has to join them, and a huge response still
 * has few events.
 */
function pieces(text: string): string[] {
  const size = Math.max(12, Math.ceil(text.length / 16))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
}
