import type { WebSocket } from 'ws'
import { HttpError } from '../clients/http.ts'
import type { ControlWord } from '../domain/mesh-connection.ts'
import { closeCodes } from '../domain/mesh-connection.ts'
import { type AnswerReceiver, type BegunAnswer, type DeviceAsk, receiver } from './exchange.ts'
import { keepAlive, packAsk, packFrame, readFrame } from './frames.ts'

/** The control plane's end of the connection that an agent made, once it has proved who it is. */
export type DeviceLink = {
  device: string
  /** Begins one exchange. Throws HttpError: `connect` where it is certain that nothing was sent. */
  begin(ask: DeviceAsk): Promise<BegunAnswer>
  tell(word: ControlWord): void
  /** Ends it; what is under way fails, and it is not known what became of that. */
  end(code: number, reason: string): void
  underWay(): number
  /** How it ended. */
  closed: Promise<{ code: number; reason: string }>
}

/** A device's exchanges at a time; an agent does eight by default, 64 at most. */
const maxUnderWay = 96
/** A device that does not read what it is sent. */
const maxUnreadBytes = 4_000_000
/** Frames of any kind in a second: an answer of 10 MB takes 160, and lines are sent together. */
const maxFramesPerSecond = 4_000
/** What may still come of exchanges that were left: each had that much under way at most. */
const strayBytesPerLeft = 2_000_000

/**
 * Speaks to an agent over an open socket. Disconnects a device that floods, does not read, or sends
 * unasked: it costs no other device anything.
 */
export function openLink(device: string, socket: WebSocket): DeviceLink {
  const receivers = new Map<number, AnswerReceiver>()
  let last = 0
  let strayBytes = strayBytesPerLeft
  const mayCome = frameBudget()
  const closed = Promise.withResolvers<{ code: number; reason: string }>()
  const violate = (reason: string) => {
    socket.close(closeCodes.violation, reason)
    // Not waited for: who floods does not answer a farewell.
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
    if (frame === null) return violate('what came is no frame')
    const found = receivers.get(frame.exchange)
    if (!found) {
      strayBytes -= frame.piece.byteLength + 64
      if (strayBytes < 0) violate('frames that nobody asked for')
    } else if (frame.kind === 'data') found.data(Uint8Array.prototype.slice.call(frame.piece))
    else if (frame.kind === 'head' && frame.piece.length === 2) found.head(frame.piece.readUInt16BE(0))
    else if (frame.kind === 'end' || frame.kind === 'drop') {
      receivers.delete(frame.exchange)
      if (frame.kind === 'end') found.end()
      else found.fail(new HttpError('protocol', `${device} broke its answer off`, true))
    } else violate('a frame that has no place here')
  })
  socket.once('close', (code, reason) => {
    const error = new HttpError('protocol', `the connection of ${device} ended before its answer came`, true)
    for (const one of receivers.values()) one.fail(error)
    receivers.clear()
    closed.resolve({ code, reason: reason.toString('utf8') })
  })

  async function begin(ask: DeviceAsk): Promise<BegunAnswer> {
    if (ask.signal?.aborted)
      throw new HttpError('aborted', `the call to ${device} was cancelled before it began`, false)
    if (socket.readyState !== socket.OPEN)
      throw new HttpError('connect', `${device}: its connection has just ended`, true)
    if (receivers.size >= maxUnderWay)
      throw new HttpError('connect', `${device} is asked ${maxUnderWay} things already`, true)
    if (socket.bufferedAmount > maxUnreadBytes) {
      socket.terminate()
      throw new HttpError('connect', `${device} does not read what it is sent`, true)
    }
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
    end(code, reason) {
      socket.close(code, reason.slice(0, 120))
      setTimeout(() => socket.terminate(), 1_000).unref()
    },
    underWay: () => receivers.size,
    closed: closed.promise,
  }
}

/** Whether one more frame may come: false once a second had too many. */
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
