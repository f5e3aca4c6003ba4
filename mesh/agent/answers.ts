import type { CapabilityAnswer, MeshErrorCode } from '../../domain/mesh.ts'
import { refusalOf } from './act.ts'
import type { Agent } from './agent.ts'
import type { Reply } from './agent-state.ts'
import type { DeviceOperation } from './operation.ts'
import { bodyBytes } from './verify-request.ts'

/** A request to the agent, over HTTP or its connection. `body` returns null if it is too large. */
export type AgentAsk = {
  method: string
  /** The path of the request, with its query. */
  path: string
  authorization?: string | undefined
  accept?: string | undefined
  lastEventId?: string | undefined
  body(): Promise<Buffer | null>
}

/** Receives the response to a request: one body, or a text in pieces. */
export type Outlet = {
  json(status: number, body: object): void
  open(): OpenOutlet
}

type OpenOutlet = {
  write(text: string): void
  end(text: string): void
  /** Number of bytes that the receiver has not taken yet. */
  waiting(): number
  onClose(act: () => void): void
}

/**
 * HTTP statuses of error codes, for proxies and logs; the body has every code. A code that is not
 * listed has the status 200, because the call was executed at least in part.
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

/** Responds to one request. Throws only for a fault of the agent. */
export async function answer(agent: Agent, ask: AgentAsk, outlet: Outlet): Promise<void> {
  const { method } = ask
  const path = ask.path.split('?')[0] as string
  const [, id] = /^\/operations\/(req_[0-9a-f]{24})$/.exec(path) ?? []
  if (path === '/health' && method === 'GET') outlet.json(200, agent.health())
  else if (path === '/capability' && method === 'POST') {
    const body = await ask.body()
    if (body) reply(outlet, await agent.call(body))
    else tooLarge(agent, outlet)
  } else if (id && method === 'DELETE') {
    const body = await ask.body()
    if (body) reply(outlet, agent.cancel(id, body))
    else tooLarge(agent, outlet)
  } else if (id && method === 'GET') show(agent, id, ask, outlet)
  else if (path === '/journal' && method === 'GET') tell(agent, ask, outlet)
  else outlet.json(404, { error: 'this address does not exist' })
}

function show(agent: Agent, id: string, ask: AgentAsk, outlet: Outlet): void {
  const refusal = agent.whyNotRead(ask.authorization, ask.path, id)
  const found = refusal ? null : agent.lookUp(id)
  if (refusal) reply(outlet, refusal)
  else if (!found) {
    const about = { request_id: id, device: agent.deviceName() ?? 'unknown' }
    const message = 'There is no such operation, or its record was removed.'
    outlet.json(404, refusalOf(about, { code: 'not_found', message }, 'refused', null, null))
  } else if ((ask.accept ?? '').includes('text/event-stream')) streamOperation(found, ask, outlet.open())
  else if ('running' in found) outlet.json(202, found.running.meanwhile)
  else outlet.json(200, found.answer)
}

/** Sends a part of the journal. The reader asks for the next part by the last entry's number. */
function tell(agent: Agent, { authorization, path }: AgentAsk, outlet: Outlet): void {
  const refusal = agent.whyNotRead(authorization, path)
  const [, after] = /^\/journal\?after=(\d{1,15})$/.exec(path) ?? []
  if (refusal) reply(outlet, refusal)
  else if (after === undefined) outlet.json(400, { error: 'ask for /journal?after=<number>' })
  else outlet.json(200, agent.journalAfter(Number(after)))
}

function reply(outlet: Outlet, { answer, code }: Reply): void {
  const status = code !== null ? (statuses[code] ?? 200) : answer.status === 'running' ? 202 : 200
  outlet.json(status, answer)
}

function tooLarge(agent: Agent, outlet: Outlet): void {
  const about = { request_id: `req_${'0'.repeat(24)}`, device: agent.deviceName() ?? 'unknown' }
  const message = `The request is larger than ${bodyBytes} bytes.`
  outlet.json(413, refusalOf(about, { code: 'malformed', message }, 'refused', null, null))
}

/** The bytes of unsent lines above which lines are dropped for a client that reads slowly. */
const maxBuffered = 4_000_000
const heartbeatMs = 15_000

/**
 * Sends each line when it comes (`event: line`, a JSON string, numbered), then `event: answer`, and
 * closes the stream. With `Last-Event-ID` it continues after the line with this number; `event:
 * missed` has the number of dropped lines.
 */
function streamOperation(
  found: { running: DeviceOperation } | Reply,
  { lastEventId }: AgentAsk,
  outlet: OpenOutlet,
): void {
  if (!('running' in found)) {
    end(outlet, found.answer)
    return
  }
  const after = Number(lastEventId ?? 0)
  let dropped = 0
  const listening = found.running.listen(Number.isInteger(after) && after > 0 ? after : 0, {
    onLine({ id, text }) {
      if (outlet.waiting() > maxBuffered) dropped += 1
      else outlet.write(`id: ${id}\nevent: line\ndata: ${JSON.stringify(text)}\n\n`)
    },
    onAnswer(answer) {
      if (dropped > 0) missed(outlet, dropped)
      end(outlet, answer)
    },
  })
  if (listening.missed > 0) missed(outlet, listening.missed)
  const heartbeat = setInterval(() => outlet.write(': still running\n\n'), heartbeatMs)
  outlet.onClose(() => {
    clearInterval(heartbeat)
    listening.stop()
  })
}

function missed(outlet: OpenOutlet, count: number): void {
  outlet.write(`event: missed\ndata: ${count}\n\n`)
}

function end(outlet: OpenOutlet, answer: CapabilityAnswer): void {
  outlet.end(`event: answer\ndata: ${JSON.stringify(answer)}\n\n`)
}
