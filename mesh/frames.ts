import type { WebSocket } from 'ws'

/**
 * Frames of an agent's connection. Text frames are the handshake and the control plane's messages
 * (`domain/mesh-connection.ts`). Binary frames are exchanges with HTTP's paths, signed bodies and
 * responses, many in parallel. A frame has a kind, the number of its exchange, and a piece.
 *
 *   control plane → agent   ask (head and body), drop
 *   agent → control plane   head (status), data …, end; or drop
 */
const kinds = ['ask', 'head', 'data', 'end', 'drop'] as const
export type FrameKind = (typeof kinds)[number]
type LinkFrame = { kind: FrameKind; exchange: number; piece: Buffer }

/** The largest piece of a response. Pieces of other responses are sent in between. */
export const maxPieceBytes = 65_536
const headBytes = 5
export const maxAnswerFrameBytes = maxPieceBytes + headBytes
/** The largest request: a body of one megabyte (`bodyBytes`), and a head. */
export const maxAskFrameBytes = 1_048_576 + 16_384

export function packFrame(kind: FrameKind, exchange: number, piece: Uint8Array = empty): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + piece.byteLength)
  frame.writeUInt8(kinds.indexOf(kind), 0)
  frame.writeUInt32BE(exchange, 1)
  frame.set(piece, headBytes)
  return frame
}

const empty = new Uint8Array()

/** Reads a frame. Null if the bytes are not a frame. */
export function readFrame(bytes: Buffer): LinkFrame | null {
  const kind = bytes.length < headBytes ? undefined : kinds[bytes.readUInt8(0)]
  return kind === undefined ? null : { kind, exchange: bytes.readUInt32BE(1), piece: bytes.subarray(headBytes) }
}

/** A request without its body, with fields like the headers of HTTP. */
type AskHead = { method: string; path: string; authorization?: string; accept?: string }

export function packAsk(exchange: number, head: AskHead, body: string | undefined): Buffer {
  const text = Buffer.from(JSON.stringify(head), 'utf8')
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(text.length, 0)
  return packFrame('ask', exchange, Buffer.concat([length, text, Buffer.from(body ?? '', 'utf8')]))
}

/** Reads a request. Null if the piece is not a request. */
export function readAsk(piece: Buffer): { head: AskHead; body: Buffer } | null {
  if (piece.length < 4) return null
  const end = 4 + piece.readUInt32BE(0)
  if (end > piece.length) return null
  try {
    const { method, path, authorization, accept } = JSON.parse(piece.subarray(4, end).toString('utf8')) as AskHead
    if (typeof method !== 'string' || typeof path !== 'string') return null
    const head = {
      method,
      path,
      ...(typeof authorization === 'string' && { authorization }),
      ...(typeof accept === 'string' && { accept }),
    }
    return { head, body: piece.subarray(end) }
  } catch {
    return null
  }
}

/** Milliseconds without a message after which a side treats the connection as lost and ends it. */
const silentMs = 25_000
const pingEveryMs = 10_000

/**
 * Pings the other side, and ends a connection that was silent for 25 s. Stops when the connection
 * closes.
 */
export function keepAlive(
  socket: WebSocket,
  { everyMs = pingEveryMs, giveUpMs = silentMs }: { everyMs?: number; giveUpMs?: number } = {},
): void {
  let heardMs = performance.now()
  const heard = () => {
    heardMs = performance.now()
  }
  for (const event of ['message', 'ping', 'pong'] as const) socket.on(event, heard)
  const timer = setInterval(() => {
    if (performance.now() - heardMs > giveUpMs) socket.terminate()
    else if (socket.readyState === socket.OPEN) socket.ping()
  }, everyMs)
  timer.unref()
  socket.once('close', () => clearInterval(timer))
}
