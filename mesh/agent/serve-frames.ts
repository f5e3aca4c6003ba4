import type { WebSocket } from 'ws'
import { type FrameKind, maxPieceBytes, packFrame, readAsk, readFrame } from '../frames.ts'
import type { Agent } from './agent.ts'
import { answer, type Outlet } from './answers.ts'
import { bodyBytes } from './verify-request.ts'

/** No more are looked at beside each other; the control plane asks fewer. */
const maxUnderWay = 128
/** An answer waits while so much of others is on its way. */
const maxOnTheWayBytes = 1_000_000
/** Lines that come close together go together. */
const togetherMs = 20

type Exchange = { isDropped: boolean; onClose: (() => void)[]; waiting: number }

/** Answers exchanges that come as frames, as the agent answers requests over HTTP. */
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

  /** In pieces, so that other answers get between them; nothing more once nobody wants it. */
  async function sendAll(id: number, exchange: Exchange, bytes: Buffer): Promise<void> {
    exchange.waiting += bytes.length
    for (let at = 0; at < bytes.length && !exchange.isDropped; at += maxPieceBytes) {
      const sent = send('data', id, bytes.subarray(at, at + maxPieceBytes))
      if (socket.bufferedAmount > maxOnTheWayBytes) await sent
    }
    exchange.waiting -= bytes.length
  }

  function outletOf(id: number, exchange: Exchange): Outlet {
    const head = (status: number) => {
      const piece = Buffer.alloc(2)
      piece.writeUInt16BE(status, 0)
      void send('head', id, piece)
    }
    const finish = () => {
      if (!exchange.isDropped) void send('end', id)
      close(id)
    }
    return {
      json(status, body) {
        if (exchange.isDropped) return
        head(status)
        void sendAll(id, exchange, Buffer.from(JSON.stringify(body), 'utf8')).then(finish)
      },
      open() {
        head(200)
        let texts: string[] = []
        let characters = 0
        let timer: NodeJS.Timeout | null = null
        // In their order, however long one is on its way.
        let sending: Promise<void> = Promise.resolve()
        const flush = () => {
          if (timer) clearTimeout(timer)
          timer = null
          const bytes = Buffer.from(texts.join(''), 'utf8')
          texts = []
          characters = 0
          sending = sending.then(() => sendAll(id, exchange, bytes))
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
      },
    }
  }

  function begin(id: number, piece: Buffer): void {
    const asked = readAsk(piece)
    if (!asked || open.has(id) || open.size >= maxUnderWay) return void send('drop', id)
    const exchange: Exchange = { isDropped: false, onClose: [], waiting: 0 }
    open.set(id, exchange)
    const { head, body } = asked
    const ask = { ...head, body: async () => (body.length > bodyBytes ? null : body) }
    answer(agent, ask, outletOf(id, exchange)).catch((error: unknown) => {
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
    /** Ends the connection once nothing is under way, or when this time is over. */
    leave(withinMs: number): void {
      const end = () => socket.close(1000, 'the agent goes elsewhere')
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
