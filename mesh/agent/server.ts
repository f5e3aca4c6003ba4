import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Agent } from './agent.ts'
import { type AgentAsk, answer, type Outlet } from './answers.ts'
import { bodyBytes } from './verify-request.ts'

/** Serves the agent over HTTP, or over HTTPS with a certificate. Does not listen yet. */
export function serve(agent: Agent, tls: { cert: string; key: string } | null): Server {
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    answer(agent, toAsk(request), toOutlet(response)).catch((error) => {
      console.error(`The agent failed: ${error instanceof Error ? error.stack : String(error)}`)
      if (!response.headersSent) json(response, 500, { error: 'the agent failed' })
      else response.destroy()
    })
  }
  const server = tls ? createHttpsServer(tls, onRequest) : createHttpServer(onRequest)
  server.headersTimeout = 10_000
  server.requestTimeout = 30_000
  server.maxRequestsPerSocket = 10_000
  return server
}

function toAsk(request: IncomingMessage): AgentAsk {
  const { authorization, accept, 'last-event-id': last } = request.headers
  return {
    method: request.method ?? 'GET',
    path: request.url ?? '/',
    authorization,
    accept,
    lastEventId: Array.isArray(last) ? last[0] : last,
    body: () => read(request),
  }
}

/** Reads the body. Null if the body is too large; its remaining bytes are then not read. */
async function read(request: IncomingMessage): Promise<Buffer | null> {
  if (Number(request.headers['content-length'] ?? 0) > bodyBytes) return null
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > bodyBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function toOutlet(response: ServerResponse): Outlet {
  return {
    json: (status, body) => json(response, status, body),
    open() {
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      return {
        write: (text) => void response.write(text),
        end: (text) => void response.end(text),
        waiting: () => response.writableLength,
        onClose: (act) => void response.on('close', act),
      }
    },
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  const bytes = Buffer.from(JSON.stringify(body), 'utf8')
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    // Closes the connection, because the remaining bytes of a too large request are not read.
    ...(status === 413 && { connection: 'close' }),
  })
  response.end(bytes)
}
