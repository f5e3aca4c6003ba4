import { HttpError, linesIn } from '../clients/http.ts'

/** A request to a device over either transport: a path of the agent, and headers as in HTTP. */
export type DeviceAsk = {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  body?: string
  authorization?: string
  accept?: string
  /** Milliseconds from the call to the last byte of the response. */
  timeoutMs: number
  signal?: AbortSignal
}

/** The most bytes of a device's response. */
export const maxAnswerBytes = 16_000_000

type WholeAnswer = { status: number; body: Uint8Array }

/**
 * A device and its transport: HTTP to the address where it listens, or the connection that it made.
 */
export type DeviceWay = {
  id: string
  /**
   * Waits while the device is between two connections, up to a time limit. Returns at once for a
   * device that listens.
   */
  ready(signal?: AbortSignal): Promise<void>
  /**
   * Makes one exchange: returns the complete response of any status, or throws HttpError. Sends the
   * request only once.
   */
  exchange(ask: DeviceAsk): Promise<WholeAnswer>
  /** Returns the response's lines when they come. Throws HttpError, also for an error status. */
  lines(ask: DeviceAsk): AsyncGenerator<string>
}

/** A response that has begun, with its bytes as they come. */
export type BegunAnswer = { status: number; pieces: AsyncIterable<Uint8Array>; leave(): void }

/** Builds `exchange` and `lines` from a function that begins an exchange. */
export function askingOver(
  id: string,
  begin: (ask: DeviceAsk) => Promise<BegunAnswer>,
): Pick<DeviceWay, 'exchange' | 'lines'> {
  return {
    async exchange(ask) {
      const { status, pieces } = await begin(ask)
      const all: Uint8Array[] = []
      for await (const piece of pieces) all.push(piece)
      return { status, body: Buffer.concat(all) }
    },
    async *lines(ask) {
      const { status, pieces, leave } = await begin(ask)
      if (status !== 200) leave()
      if (status !== 200) throw new HttpError('protocol', `${id} answered ${status}`, status >= 500)
      yield* linesIn(pieces)
    },
  }
}

/** The least bytes that a piece counts, so that many small pieces also reach the limit. */
const leastBytes = 512

/**
 * The receiving end of one exchange. Pieces of the response are pushed, and read in order. The
 * exchange ends once, successfully or with an error.
 */
export type AnswerReceiver = {
  answer: Promise<BegunAnswer>
  head(status: number): void
  data(piece: Uint8Array): void
  end(): void
  fail(error: HttpError): void
}

/**
 * Watches the time, the size and the cancellation of one exchange. `onLeft` is called if the
 * receiver gave up before the device ended its response.
 */
export function receiver(id: string, ask: DeviceAsk, onLeft: () => void): AnswerReceiver {
  const begun = Promise.withResolvers<BegunAnswer>()
  // Ignores the error if no caller waits for the response.
  begun.promise.catch(() => {})
  const waiting: Uint8Array[] = []
  let bytes = 0
  let state: 'open' | 'ended' | HttpError = 'open'
  let wake: () => void = () => {}
  const timer = setTimeout(
    () => leave(new HttpError('timeout', `${id} took longer than ${ask.timeoutMs} ms`, true)),
    ask.timeoutMs,
  )
  const onAbort = () => leave(new HttpError('aborted', `the call to ${id} was cancelled`, false))
  ask.signal?.addEventListener('abort', onAbort, { once: true })

  function close(next: 'ended' | HttpError): void {
    if (state !== 'open') return
    state = next
    clearTimeout(timer)
    ask.signal?.removeEventListener('abort', onAbort)
    if (next !== 'ended') begun.reject(next)
    wake()
  }
  function leave(error: HttpError): void {
    if (state !== 'open') return
    close(error)
    onLeft()
  }
  const leaveUnread = () => leave(new HttpError('aborted', `the response of ${id} was not read to its end`, false))
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const piece = waiting.shift()
        if (piece) yield piece
        else if (state === 'ended') return
        else if (state !== 'open') throw state
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    } finally {
      leaveUnread()
    }
  }
  return {
    answer: begun.promise,
    head: (status) => begun.resolve({ status, pieces: read(), leave: leaveUnread }),
    data(piece) {
      if (state !== 'open') return
      bytes += Math.max(piece.byteLength, leastBytes)
      if (bytes > maxAnswerBytes)
        return leave(new HttpError('too_large', `the response of ${id} is larger than ${maxAnswerBytes} bytes`, false))
      waiting.push(piece)
      wake()
    },
    end: () => close('ended'),
    fail: (error) => close(error),
  }
}
