import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Said = { tool: string; arguments: Record<string, unknown> | string }

/**
 * What the model says to a request. Calls become native tool calls; a string is prose; a function
 * has the response to itself (to hang, to break off, to answer 429).
 */
export type Line = Said[] | string | ((response: import('node:http').ServerResponse) => void)

export type ChatRequest = {
  messages: { role: string; content: string | null; tool_calls?: unknown[] }[]
  tools?: unknown[]
  model: string
}

export type ScriptedModel = {
  url: string
  requests: ChatRequest[]
  stop(): Promise<void>
}

/**
 * A chat-completions server that says what `script` returns for the n-th request. It speaks the
 * real protocol over HTTP.
 */
export async function scriptedModel(
  script: (turn: number, request: ChatRequest) => Line | Promise<Line>,
): Promise<ScriptedModel> {
  const requests: ChatRequest[] = []
  const server = createServer(async (request, response) => {
    if (!request.url?.endsWith('/chat/completions')) {
      response.statusCode = 404
      return response.end()
    }
    const asked = JSON.parse(await textOf(request)) as ChatRequest
    requests.push(asked)
    const line = await script(requests.length, asked)
    if (typeof line === 'function') return line(response)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(completion(line, asked)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function completion(line: Said[] | string, asked: ChatRequest) {
  const prose = typeof line === 'string'
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 0,
    model: asked.model,
    choices: [
      {
        index: 0,
        finish_reason: prose ? 'stop' : 'tool_calls',
        message: {
          role: 'assistant',
          content: prose ? line : '',
          ...(prose
            ? {}
            : {
                tool_calls: line.map((said, index) => ({
                  id: `call_${index}`,
                  type: 'function',
                  function: {
                    name: said.tool,
                    arguments: typeof said.arguments === 'string' ? said.arguments : JSON.stringify(said.arguments),
                  },
                })),
              }),
        },
      },
    ],
    usage: {
      prompt_tokens: Math.ceil(JSON.stringify(asked.messages).length / 4),
      completion_tokens: 20,
      total_tokens: 0,
    },
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
