import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Seen = { method: string; path: string; headers: Record<string, string>; body: string }
export type Play = (response: ServerResponse, seen: Seen, request: IncomingMessage) => void

export type LocalServer = { url: string; port: number; seen: Seen[]; play(next: Play): void; close(): Promise<void> }

/** A real HTTP server on this machine that does what the test says and remembers what it was sent. */
export async function startLocalServer(): Promise<LocalServer> {
  const seen: Seen[] = []
  let current: Play = (response) => response.end()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
        body: Buffer.concat(chunks).toString(),
      }
      seen.push(one)
      current(response, one, request)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    play(next) {
      current = next
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

export function answerJson(status: number, body: unknown, headers: Record<string, string> = {}): Play {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}
