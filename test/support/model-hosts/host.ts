import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Dialect, eventsOf } from './streams.ts'

export type Asked = {
  model: string
  messages: { role: string; content: string | null; tool_calls?: { id: string }[]; tool_call_id?: string }[]
  tools?: unknown[]
} & Record<string, unknown>

/** What the model says: words, calls and reasoning, before its server puts them into a body. */
export type Spoken = {
  content?: string
  calls?: { name: string; arguments: Record<string, unknown> }[]
  reasoning?: string
  finish?: string
}
export type Answered = { status: number; body: unknown; headers?: Record<string, string> }

/** A server as others run it: what it takes, what it refuses and how, and the form of its answers. */
export type ModelHost = {
  /** Answers any path but the completions; null is a 404. */
  other(path: string, body: Record<string, unknown> | null): unknown
  /** What it says against a request, or null where it takes it. */
  refuse(asked: Asked, headers: IncomingHttpHeaders): Answered | null
  answer(spoken: Spoken, asked: Asked): unknown
  /** How it streams; without it `stream` is passed over and the answer comes whole. */
  dialect?: Dialect
  /** Between two pieces of a stream. */
  pauseMs?: number
}

export type RunningHost = { url: string; asked: Asked[]; paths: string[]; host: ModelHost; stop(): Promise<void> }

/** Plays a host over HTTP; `speak` is the model behind it, or an answer of the server's own with `status`. */
export async function runHost(
  host: ModelHost,
  speak: (asked: Asked, turn: number) => Spoken | Answered | Promise<Spoken | Answered>,
): Promise<RunningHost> {
  const asked: Asked[] = []
  const paths: string[] = []
  let turn = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const body = text === '' ? null : (JSON.parse(text) as Asked)
    const path = request.url ?? ''
    paths.push(`${request.method} ${path}`)
    const send = ({ status, body, headers = {} }: Answered) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    if (!path.endsWith('/chat/completions') || body === null) {
      const found = host.other(path, body)
      return send(found === null ? { status: 404, body: { detail: 'Not Found' } } : { status: 200, body: found })
    }
    asked.push(body)
    const refused = host.refuse(body, request.headers)
    if (refused) return send(refused)
    turn += 1
    const said = await speak(body, turn)
    if ('status' in said) return send(said)
    const whole = host.answer(said, body)
    if (!host.dialect || body.stream !== true) return send({ status: 200, body: whole })
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    for (const event of eventsOf(host.dialect, whole, body)) {
      response.write(event)
      if (host.pauseMs) await sleep(host.pauseMs)
    }
    response.end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    ...{ url: `http://127.0.0.1:${port}`, asked, paths, host },
    stop: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

/** About as many tokens as a server would count. */
export function tokensOf(asked: Asked): number {
  return Math.ceil(JSON.stringify([asked.messages, asked.tools ?? []]).length / 4)
}

export function callsOf(spoken: Spoken, id: (index: number) => string) {
  return (spoken.calls ?? []).map((call, index) => ({
    id: id(index),
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }))
}

/** Every parameter that is not of these, by name. */
export function unknownOf(asked: Asked, known: readonly string[]): string[] {
  return Object.keys(asked).filter((name) => !known.includes(name))
}
