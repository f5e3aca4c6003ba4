import type { Asked } from './host.ts'

/** How a server streams what it would also say whole: where the ones of the field differ. */
export type Dialect = {
  /** `pieces`: id and name first, then the arguments bit by bit. `whole`: each call in one piece. */
  calls: 'pieces' | 'whole'
  /** Older Ollama gives every call the index 0. */
  index: 'each' | 'zero'
  /** `asked`: a last piece without choices, where `stream_options` asks for it. */
  usage: 'asked' | 'with the end' | 'never'
  /** Signs of life before the first token. */
  comment?: string
  /** The closing `[DONE]`. */
  isClosed?: boolean
}

type Message = {
  content: string | null
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[]
} & Record<string, unknown>
type Whole = { choices: { message: Message; finish_reason: string }[]; usage?: unknown } & Record<string, unknown>

/** The events of a stream, each as the text that goes over the wire. */
export function eventsOf(dialect: Dialect, whole: unknown, asked: Asked): string[] {
  const { choices, usage, ...head } = whole as Whole
  const { message, finish_reason } = choices[0]!
  const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
    ...{ ...head, object: 'chat.completion.chunk', ...more },
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  })
  const wantsCounts = (asked.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true
  const reasoning = (['reasoning_content', 'reasoning'] as const).find((each) => typeof message[each] === 'string')
  const chunks: object[] = [
    chunk({ role: 'assistant', content: '' }),
    ...(reasoning ? pieces(message[reasoning] as string).map((each) => chunk({ [reasoning]: each })) : []),
    ...pieces(message.content ?? '').map((content) => chunk({ content })),
    ...callChunks(dialect, message.tool_calls ?? []).map((tool_calls) => chunk({ tool_calls })),
    chunk({}, finish_reason, dialect.usage === 'with the end' ? { usage } : {}),
    ...(dialect.usage === 'asked' && wantsCounts ? [{ ...head, choices: [], usage }] : []),
  ]
  return [
    ...(dialect.comment ? [`: ${dialect.comment}\n\n`] : []),
    ...chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`),
    ...(dialect.isClosed === false ? [] : ['data: [DONE]\n\n']),
  ]
}

function callChunks({ calls, index }: Dialect, given: NonNullable<Message['tool_calls']>): object[][] {
  return given.flatMap((call, place) => {
    const at = index === 'each' ? place : 0
    if (calls === 'whole') return [[{ index: at, ...call }]]
    const { id, type, function: called } = call
    const rest = pieces(called.arguments).map((text) => [{ index: at, function: { arguments: text } }])
    return [[{ index: at, id, type, function: { name: called.name, arguments: '' } }], ...rest]
  })
}

function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,7}/g) ?? []
}
