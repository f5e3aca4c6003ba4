import { z } from 'zod'
import { verificationOutcomes } from '../../domain/envelope.ts'

/** The chat-completions request, as far as a rule table reads it. What it does not know it ignores. */
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
  /** Jobs that the operator declared for its resource. */
  jobs: z
    .array(z.object({ name: z.string(), about: z.string() }))
    .default([])
    .catch([]),
  hint: z.string().nullish(),
})
export type IncidentContext = z.infer<typeof incidentContext>

const envelope = z.object({
  ok: z.boolean(),
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
export type Result = z.infer<typeof envelope>

/** The finer word of an error where it has one: nine codes tell the kind, the rule tells which. */
export function ruleOf(result: Result | null): string | null {
  const rule = result?.error?.details?.rule
  return typeof rule === 'string' ? rule : (result?.error?.code ?? null)
}

/** A call that was made and what came back; `turn` counts the model's answers, several calls may share one. */
export type Step = { turn: number; tool: string; args: Record<string, unknown>; result: Result | null }

export type Conversation = {
  protocol: 'native' | 'json'
  /** Logs are read in a source that collects them, or else on the device that writes them. */
  hasLogSource?: boolean
  context: IncidentContext | null
  hint: string | null
  steps: Step[]
  /** Corrections since the last tool result. */
  corrections: number
}

/** Reads a request into what the decision table looks at. Never throws on what the messages say. */
export function conversationOf(request: ChatRequest): Conversation {
  const conversation: Conversation = {
    protocol: request.tools && request.tools.length > 0 ? 'native' : 'json',
    hasLogSource:
      request.tools?.some(
        ({ function: each }) => each.parameters?.properties?.labels !== undefined && each.name === 'search_logs',
      ) ?? false,
    context: null,
    hint: null,
    steps: [],
    corrections: 0,
  }
  const waiting: (Step & { id: string | null })[] = []
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
      answer(waiting, tool_call_id ?? null, content)
      conversation.corrections = 0
    } else if (role === 'user') {
      if (content.startsWith('CORRECTION:')) conversation.corrections++
      for (const { name, text } of dataBlocks(content)) {
        if (name === 'incident_context') conversation.context ??= incidentContext.safeParse(parse(text)).data ?? null
        else if (name === 'hint') conversation.hint ??= text.trim() || null
        else if (name === 'tool_result') {
          answer(waiting, null, text)
          conversation.corrections = 0
        }
      }
    }
  }
  conversation.hint ??= conversation.context?.hint ?? null
  return conversation
}

/** The fenced blocks of a message: between a line `<<<DATA name` and a line `DATA>>>`. */
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

/** Gives a result to its call: by id where there is one, else to the oldest call without. */
function answer(waiting: (Step & { id: string | null })[], id: string | null, text: string): void {
  const at = waiting.findIndex((step) => id === null || step.id === id)
  if (at < 0) return
  const [step] = waiting.splice(at, 1)
  const block = dataBlocks(text).find(({ name }) => name === 'tool_result')?.text ?? text
  const unreadable = { ok: false, error: { code: 'UNREADABLE', message: 'the result is not an envelope' }, meta: {} }
  step!.result = envelope.safeParse(parse(block)).data ?? unreadable
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
