import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { CapabilityAnswer, MeshErrorCode } from '../../domain/mesh.ts'
import { refusalOf } from './act.ts'
import type { Agent } from './agent.ts'
import type { Reply } from './agent-state.ts'
import type { DeviceOperation } from './operation.ts'
import { bodyBytes } from './verify-request.ts'

/**
 * Every code is in the body; the status is for proxies and logs. Codes that are not listed are 200:
 * something was done.
 */
const statuses: Partial<Record<MeshErrorCode, number>> = {
  malformed: 400,
  bad_signature: 401,
  unknown_key: 401,
  wrong_device: 403,
  clock_skew: 401,
  bad_deadline: 400,
  replayed_nonce: 409,
  manifest_invalid: 503,
  blocked: 403,
  approval_required: 403,
  grant_forged: 403,
  grant_replayed: 403,
  grant_expired: 403,
  grant_wrong_device: 403,
  grant_altered: 403,
  capability_unavailable: 501,
  invalid_arguments: 422,
  outside_roots: 403,
  not_found: 404,
  busy: 429,
  idempotency_key_reused: 422,
  indeterminate: 409,
}

/** The agent over HTTP, or HTTPS with a certificate. It does not listen yet. */
export function serve(agent: Agent, tls: { cert: string; key: string } | null): Server {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    route(agent, request, response).catch((error) => {
      console.error(`The agent failed: ${error instanceof Error ? error.stack : String(error)}`)
      if (!response.headersSent) json(response, 500, { error: 'the agent failed' })
      else response.destroy()
    })
  }
  const server = tls ? createHttpsServer(tls, answer) : createHttpServer(answer)
  server.headersTimeout = 10_000
  server.requestTimeout = 30_000
  server.maxRequestsPerSocket = 10_000
  return server
}

async function route(agent: Agent, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = 'GET' } = request
  const path = (request.url ?? '/').split('?')[0] as string
  const [, id] = /^\/operations\/(req_[0-9a-f]{24})$/.exec(path) ?? []
  if (path === '/health' && method === 'GET') json(response, 200, agent.health())
  else if (path === '/capability' && method === 'POST') {
    const body = await read(request)
    if (body) reply(response, await agent.call(body))
    else tooLarge(agent, response)
  } else if (id && method === 'DELETE') {
    const body = await read(request)
    if (body) reply(response, agent.cancel(id, body))
    else tooLarge(agent, response)
  } else if (id && method === 'GET') show(agent, id, request, response)
  else if (path === '/journal' && method === 'GET') tell(agent, request, response)
  else json(response, 404, { error: 'there is nothing here' })
}

function show(agent: Agent, id: string, request: IncomingMessage, response: ServerResponse): void {
  const refusal = agent.whyNotRead(request.headers.authorization, request.url ?? '', id)
  const found = refusal ? null : agent.lookUp(id)
  if (refusal) reply(response, refusal)
  else if (!found) {
    const about = { request_id: id, device: agent.deviceName() ?? 'unknown' }
    const message = 'There is no such operation, or not any more.'
    json(response, 404, refusalOf(about, { code: 'not_found', message }, 'refused', null, null))
  } else if ((request.headers.accept ?? '').includes('text/event-stream')) streamOperation(found, request, response)
  else if ('running' in found) json(response, 202, found.running.meanwhile)
  else json(response, 200, found.answer)
}

/** The journal in pieces: a reader asks again with the number of the last entry. */
function tell(agent: Agent, request: IncomingMessage, response: ServerResponse): void {
  const asked = request.url ?? ''
  const refusal = agent.whyNotRead(request.headers.authorization, asked)
  const [, after] = /^\/journal\?after=(\d{1,15})$/.exec(asked) ?? []
  if (refusal) reply(response, refusal)
  else if (after === undefined) json(response, 400, { error: 'ask for /journal?after=<number>' })
  else json(response, 200, agent.journalAfter(Number(after)))
}

function reply(response: ServerResponse, { answer, code }: Reply): void {
  const status = code !== null ? (statuses[code] ?? 200) : answer.status === 'running' ? 202 : 200
  json(response, status, answer)
}

function tooLarge(agent: Agent, response: ServerResponse): void {
  const about = { request_id: `req_${'0'.repeat(24)}`, device: agent.deviceName() ?? 'unknown' }
  const message = `The request is larger than ${bodyBytes} bytes.`
  response.setHeader('connection', 'close')
  json(response, 413, refusalOf(about, { code: 'malformed', message }, 'refused', null, null))
}

/** The body, or null when it is too large: no more of it is read then. */
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

function json(response: ServerResponse, status: number, body: CapabilityAnswer | object): void {
  const bytes = Buffer.from(JSON.stringify(body), 'utf8')
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
  })
  response.end(bytes)
}

/**
 * A client that reads slower than a program writes is not waited for: beyond this, lines are
 * dropped.
 */
const maxBuffered = 4_000_000
const heartbeatMs = 15_000

/**
 * Lines as they come (`event: line`, a JSON string each, numbered), then `event: answer` and the
 * end. `Last-Event-ID` goes on behind that line; `event: missed` says how many are gone meanwhile.
 */
function streamOperation(
  found: { running: DeviceOperation } | Reply,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  if (!('running' in found)) {
    end(response, found.answer)
    return
  }
  const after = Number(request.headers['last-event-id'] ?? 0)
  let dropped = 0
  const listening = found.running.listen(Number.isInteger(after) && after > 0 ? after : 0, {
    onLine({ id, text }) {
      if (response.writableLength > maxBuffered) dropped += 1
      else response.write(`id: ${id}\nevent: line\ndata: ${JSON.stringify(text)}\n\n`)
    },
    onAnswer(answer) {
      if (dropped > 0) missed(response, dropped)
      end(response, answer)
    },
  })
  if (listening.missed > 0) missed(response, listening.missed)
  const heartbeat = setInterval(() => response.write(': still running\n\n'), heartbeatMs)
  response.on('close', () => {
    clearInterval(heartbeat)
    listening.stop()
  })
}

function missed(response: ServerResponse, count: number): void {
  response.write(`event: missed\ndata: ${count}\n\n`)
}

function end(response: ServerResponse, answer: CapabilityAnswer): void {
  response.end(`event: answer\ndata: ${JSON.stringify(answer)}\n\n`)
}
