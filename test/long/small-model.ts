import { createServer } from 'node:http'
import { pathToFileURL } from 'node:url'

/**
 * SmolLM2-135M behind `/v1/chat/completions`, in one thread: `node small-model.ts PORT
 * LLAMA_PACKAGE MODEL.gguf`. Its chat template knows no tools, so their definitions join the system
 * message and a call is what it writes as `{"name": …, "arguments": …}`, as servers do for models
 * without a template for tools.
 */
type Message = { role: string; content: string | null; tool_calls?: unknown[] }
type Tool = { function: { name: string; description: string; parameters: unknown } }
type Asked = { messages: Message[]; tools?: Tool[]; max_tokens?: number }

const windowTokens = 8_192
const mostTokens = 64
const [port, llamaPackage = '', modelPath = ''] = process.argv.slice(2)

const { getLlama, LlamaCompletion } = await import(pathToFileURL(llamaPackage).href)
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error' })
const model = await llama.loadModel({ modelPath })
// One thread: several would wait for each other in a loop, and on a busy machine that takes
// minutes.
const context = await model.createContext({ contextSize: windowTokens, threads: 1 })
const completion = new LlamaCompletion({ contextSequence: context.getSequence() })

/** ChatML, which this model was tuned on. */
function toPrompt({ messages, tools = [] }: Asked): string {
  const listed = tools.map(({ function: each }) => JSON.stringify(each)).join('\n')
  const told = tools.length === 0 ? '' : `\n\nTools:\n${listed}\nTo call one, write {"name": "…", "arguments": {…}}.`
  const turns = messages.map(({ role, content, tool_calls: calls }, index) => {
    const said = content ?? JSON.stringify(calls ?? [])
    return `<|im_start|>${role === 'tool' ? 'user' : role}\n${said}${index === 0 ? told : ''}<|im_end|>\n`
  })
  return `${turns.join('')}<|im_start|>assistant\n`
}

/** The call in what it wrote, if that is one. */
function callIn(text: string): { name: string; arguments: unknown } | null {
  const found = /\{\s*"name"\s*:[\s\S]*\}/.exec(text)?.[0]
  try {
    const { name, arguments: given = {} } = JSON.parse(found ?? '')
    return typeof name === 'string' ? { name, arguments: given } : null
  } catch {
    return null
  }
}

async function answer(asked: Asked) {
  const tokens = model.tokenize(toPrompt(asked), true)
  const limit = Math.min(asked.max_tokens ?? mostTokens, mostTokens)
  if (tokens.length + limit > windowTokens) return null
  const text: string = await completion.generateCompletion(tokens, {
    maxTokens: limit,
    customStopTriggers: ['<|im_end|>'],
  })
  const call = asked.tools ? callIn(text) : null
  const calls = call && [
    { id: 'call_1', type: 'function', function: { name: call.name, arguments: JSON.stringify(call.arguments) } },
  ]
  return {
    model: 'smollm2-135m',
    choices: [
      {
        index: 0,
        finish_reason: calls ? 'tool_calls' : 'stop',
        message: { role: 'assistant', content: text, ...(calls && { tool_calls: calls }) },
      },
    ],
    usage: { prompt_tokens: tokens.length, completion_tokens: model.tokenize(text).length },
  }
}

/** One after the other: there is one sequence. */
let last: Promise<unknown> = Promise.resolve()
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const send = (status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  if (!request.url?.endsWith('/chat/completions'))
    return send(200, { data: [{ id: 'smollm2-135m', max_model_len: windowTokens }] })
  const asked = JSON.parse(Buffer.concat(chunks).toString()) as Asked
  last = last
    .then(() => answer(asked))
    .then(
      (body) =>
        body
          ? send(200, body)
          : send(400, { error: { message: `This model's maximum context length is ${windowTokens} tokens.` } }),
      (error: Error) => send(500, { error: { message: error.message } }),
    )
})
server.listen(Number(port), '127.0.0.1', () => console.log('ready'))
