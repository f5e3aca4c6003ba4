import type { WebSocket } from 'ws'
import { type FrameKind, maxPieceBytes, packFrame, readAsk, readFrame } from '../frames.ts'
import type { Agent } from './agent.ts'
import { answer, type Outlet } from './answers.ts'
import { bodyBytes } from './verify-request.ts'

/** The most exchanges in parallel. The control plane uses fewer exchanges. */
const maxUnderWay = 128
/** The bytes of unsent responses above which a response waits. */
const maxOnTheWayBytes = 1_000_000
/** Milliseconds within which lines are joined. */
const togetherMs = 20

type Exchange = { isDropped: boolean; onClose: (() => void)[]; waiting: number }

/** Responds to exchanges in frames, as the server does to requests over HTTP. */
export function serveFrames(agent: Agent, socket: WebSocket) {
  const open = new Map<number, Exchange>()
  let onIdle: (() => void) | null = null

  function send(kind: FrameKind, id: number, piece?: Uint8Array): Promise<void> {
    return new Promise((resolve) => socket.send(packFrame(kind, id, piece), () => resolve()))
  }

  function close(id: number): void {
    const exchange = open.get(id)
    if (!exchange) return
    open.delete(id)
    exchange.isDropped = true
    for (const act of exchange.onClose) act()
    if (open.size === 0) onIdle?.()
  }

  /**
   * Sends a response in pieces, so that other responses can be sent in between. Stops if the
   * exchange is dropped.
   */
  async function sendAll(id: number, exchange: Exchange, bytes: Buffer): Promise<void> {
    exchange.waiting += bytes.length
    for (let at = 0; at < bytes.length && !exchange.isDropped; at += maxPieceBytes) {
      const sent = send('data', id, bytes.subarray(at, at + maxPieceBytes))
      if (socket.bufferedAmount > maxOnTheWayBytes) await sent
    }
    exchange.waiting -= bytes.length
  }

  function begin(id: number, piece: Buffer): void {
    const asked = readAsk(piece)
    if (!asked || open.has(id) || open.size >= maxUnderWay) return void send('drop', id)
    const exchange: Exchange = { isDropped: false, onClose: [], waiting: 0 }
    open.set(id, exchange)
    const { head, body } = asked
    const ask = { ...head, body: async () => (body.length > bodyBytes ? null : body) }
    const wire: Wire = { send: (kind, piece) => send(kind, id, piece), sendAll: (all) => sendAll(id, exchange, all) }
    const outlet = outletOf(exchange, wire, () => close(id))
    answer(agent, ask, outlet).catch((error: unknown) => {
      console.error(`The agent failed: ${error instanceof Error ? error.stack : String(error)}`)
      void send('drop', id)
      close(id)
    })
  }

  return {
    take(bytes: Buffer): void {
      const frame = readFrame(bytes)
      if (frame?.kind === 'ask') begin(frame.exchange, frame.piece)
      else if (frame?.kind === 'drop') close(frame.exchange)
    },
    /** Ends the connection when no exchange runs any more, or after this time. */
    leave(withinMs: number): void {
      const end = () => socket.close(1000, 'the agent connects to another process')
      const timer = setTimeout(end, withinMs)
      timer.unref()
      onIdle = end
      if (open.size === 0) end()
    },
    close(): void {
      for (const id of [...open.keys()]) close(id)
    },
  }
}

/** Sends frames of one exchange. */
type Wire = { send(kind: FrameKind, piece?: Uint8Array): Promise<void>; sendAll(bytes: Buffer): Promise<void> }

function outletOf(exchange: Exchange, { send, sendAll }: Wire, close: () => void): Outlet {
  const head = (status: number) => {
    const piece = Buffer.alloc(2)
    piece.writeUInt16BE(status, 0)
    void send('head', piece)
  }
  const finish = () => {
    if (!exchange.isDropped) void send('end')
    close()
  }
  return {
    json(status, body) {
      if (exchange.isDropped) return
      head(status)
      void sendAll(Buffer.from(JSON.stringify(body), 'utf8')).then(finish)
    },
    open() {
      head(200)
      return openLines(exchange, sendAll, finish)
    },
  }
}

/** Sends lines that come within a short time as one piece, in their order. */
function openLines(exchange: Exchange, sendAll: Wire['sendAll'], finish: () => void): ReturnType<Outlet['open']> {
  let texts: string[] = []
  let characters = 0
  let timer: NodeJS.Timeout | null = null
  // Sends pieces in order, even if sending a piece takes long.
  let sending: Promise<void> = Promise.resolve()
  const flush = () => {
    if (timer) clearTimeout(timer)
    timer = null
    const bytes = Buffer.from(texts.join(''), 'utf8')
    texts = []
    characters = 0
    sending = sending.then(() => sendAll(bytes))
  }
  return {
    write(text) {
      texts.push(text)
      characters += text.length
      timer ??= setTimeout(flush, togetherMs)
    },
    end(text) {
      texts.push(text)
      flush()
      void sending.then(finish)
    },
    waiting: () => exchange.waiting + characters,
    onClose: (act) => void exchange.onClose.push(act),
  }
}
