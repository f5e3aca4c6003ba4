import type { WebSocket } from 'ws'
import { HttpError } from '../clients/http.ts'
import type { ControlWord } from '../domain/mesh-connection.ts'
import { closeCodes } from '../domain/mesh-connection.ts'
import { type AnswerReceiver, type BegunAnswer, type DeviceAsk, receiver } from './exchange.ts'
import { keepAlive, packAsk, packFrame, readFrame } from './frames.ts'

/** The control plane's end of an agent's connection, after the agent proved its identity. */
export type DeviceLink = {
  device: string
  /**
   * Begins one exchange. Throws HttpError, with `connect` if it is certain that nothing was sent.
   */
  begin(ask: DeviceAsk): Promise<BegunAnswer>
  tell(word: ControlWord): void
  /** Ends the connection. Running exchanges fail with an unknown outcome. */
  end(code: number, reason: string): void
  underWay(): number
  /** Resolves when the connection has ended. */
  closed: Promise<{ code: number; reason: string }>
}

/** The most exchanges with a device at a time. An agent allows eight by default, and at most 64. */
const maxUnderWay = 96
/** The most bytes that a device may leave unread. */
const maxUnreadBytes = 4_000_000
/**
 * The most frames of any kind per second. A response of 10 MB takes 160 frames, and lines are
 * joined.
 */
const maxFramesPerSecond = 4_000
/** Bytes that may still come for one abandoned exchange: at most so many were in transit. */
const strayBytesPerLeft = 2_000_000

/**
 * Exchanges messages with an agent over an open socket. Disconnects a device that floods, does not
 * read, or sends frames without a request. Other devices are not affected.
 */
export function openLink(device: string, socket: WebSocket): DeviceLink {
  const receivers = new Map<number, AnswerReceiver>()
  let last = 0
  let strayBytes = strayBytesPerLeft
  const mayCome = frameBudget()
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  const violate = (reason: string) => {
    socket.close(closeCodes.violation, reason)
    // Cuts the connection at once, because a device that floods does not reply.
    socket.terminate()
  }
  const count = () => {
    if (!mayCome()) violate('too many frames in a second')
  }

  keepAlive(socket)
  socket.on('ping', count)
  socket.on('pong', count)
  socket.on('error', () => socket.terminate())
  socket.on('message', (bytes: Buffer, isBinary: boolean) => {
    count()
    const frame = isBinary ? readFrame(bytes) : null
    if (frame === null) return violate('the message is not a frame')
    const found = receivers.get(frame.exchange)
    if (!found) {
      strayBytes -= frame.piece.byteLength + 64
      if (strayBytes < 0) violate('frames without a request')
    } else if (frame.kind === 'data') found.data(Uint8Array.prototype.slice.call(frame.piece))
    else if (frame.kind === 'head' && frame.piece.length === 2) found.head(frame.piece.readUInt16BE(0))
    else if (frame.kind === 'end' || frame.kind === 'drop') {
      receivers.delete(frame.exchange)
      if (frame.kind === 'end') found.end()
      else found.fail(new HttpError('protocol', `${device} ended its response too early`, true))
    } else violate('an unexpected frame')
  })
  socket.once('close', (code, reason) => {
    const error = new HttpError('protocol', `the connection of ${device} ended before its response came`, true)
    for (const one of receivers.values()) one.fail(error)
    receivers.clear()
    closed.resolve({ code, reason: reason.toString('utf8') })
  })

  async function begin(ask: DeviceAsk): Promise<BegunAnswer> {
    refuseUnsendable(device, socket, ask, receivers.size)
    last = (last + 1) % 0xffffffff
    const exchange = last
    const { method, path, body, authorization, accept } = ask
    const one = receiver(device, ask, () => {
      if (!receivers.delete(exchange)) return
      strayBytes = Math.min(strayBytes + strayBytesPerLeft, maxUnderWay * strayBytesPerLeft)
      if (socket.readyState === socket.OPEN) socket.send(packFrame('drop', exchange))
    })
    receivers.set(exchange, one)
    socket.send(
      packAsk(exchange, { method, path, ...(authorization && { authorization }), ...(accept && { accept }) }, body),
    )
    return await one.answer
  }

  return {
    device,
    begin,
    tell(word) {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(word))
    },
    end: (code, reason) => endWithin(socket, code, reason, 1_000),
    underWay: () => receivers.size,
    closed: closed.promise,
  }
}

/** Closes the connection, and cuts it if the agent does not reply in time. */
function endWithin(socket: WebSocket, code: number, reason: string, withinMs: number): void {
  socket.close(code, reason.slice(0, 120))
  setTimeout(() => socket.terminate(), withinMs).unref()
}

/** Throws HttpError if this request cannot be sent over this connection. */
function refuseUnsendable(device: string, socket: WebSocket, { signal }: DeviceAsk, underWay: number): void {
  if (signal?.aborted) throw new HttpError('aborted', `the call to ${device} was cancelled before it began`, false)
  if (socket.readyState !== socket.OPEN) throw new HttpError('connect', `${device}: its connection has ended`, true)
  if (underWay >= maxUnderWay) throw new HttpError('connect', `${device} already answers ${maxUnderWay} requests`, true)
  if (socket.bufferedAmount <= maxUnreadBytes) return
  socket.terminate()
  throw new HttpError('connect', `${device} does not read its messages`, true)
}

/**
 * Returns a function that counts a frame. The function is false if the present second has too many
 * frames.
 */
function frameBudget(): () => boolean {
  let sinceMs = performance.now()
  let frames = 0
  return () => {
    const nowMs = performance.now()
    if (nowMs - sinceMs >= 1_000) {
      sinceMs = nowMs
      frames = 0
    }
    frames += 1
    return frames <= maxFramesPerSecond
  }
}
