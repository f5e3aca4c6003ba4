import type { WebSocket } from 'ws'

/**
 * Frames of an agent's connection. Text frames are the handshake and the control plane's words
 * (`domain/mesh-connection.ts`); binary frames are exchanges: HTTP's paths, signed bodies and
 * answers, many side by side. A frame is a kind, its exchange's number, and a piece.
 *
 *   control plane → agent   ask (head and body), drop
 *   agent → control plane   head (status), data …, end; or drop
 */
const kinds = ['ask', 'head', 'data', 'end', 'drop'] as const
export type FrameKind = (typeof kinds)[number]
type LinkFrame = { kind: FrameKind; exchange: number; piece: Buffer }

/** The largest piece of an answer. Other exchanges get between the pieces of a long one. */
export const maxPieceBytes = 65_536
const headBytes = 5
export const maxAnswerFrameBytes = maxPieceBytes + headBytes
/** A request has at most a megabyte (`bodyBytes`), and a head. */
export const maxAskFrameBytes = 1_048_576 + 16_384

export function packFrame(kind: FrameKind, exchange: number, piece: Uint8Array = empty): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + piece.byteLength)
  frame.writeUInt8(kinds.indexOf(kind), 0)
  frame.writeUInt32BE(exchange, 1)
  frame.set(piece, headBytes)
  return frame
}

const empty = new Uint8Array()

/** Null for bytes that are no frame. */
export function readFrame(bytes: Buffer): LinkFrame | null {
  const kind = bytes.length < headBytes ? undefined : kinds[bytes.readUInt8(0)]
  return kind === undefined ? null : { kind, exchange: bytes.readUInt32BE(1), piece: bytes.subarray(headBytes) }
}

/** What a request says besides its body, as the headers of HTTP would. */
type AskHead = { method: string; path: string; authorization?: string; accept?: string }

export function packAsk(exchange: number, head: AskHead, body: string | undefined): Buffer {
  const text = Buffer.from(JSON.stringify(head), 'utf8')
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(text.length, 0)
  return packFrame('ask', exchange, Buffer.concat([length, text, Buffer.from(body ?? '', 'utf8')]))
}

/** Null for a piece that is no request. */
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

/** A side that heard nothing for so long takes the connection for dead, and ends it. */
const silentMs = 25_000
const pingEveryMs = 10_000

/** Pings the other side, and ends a connection silent for 25 s. Stops when it closes. */
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
