import type { CapabilityAnswer } from '../../domain/mesh.ts'

const maxLines = 1_000

const maxBytes = 1_000_000

type OutputLine = { id: number; text: string }

type Listener = { onLine(line: OutputLine): void; onAnswer(answer: CapabilityAnswer): void }

/** A running operation. It keeps its newest lines for listeners that come later. */
export type DeviceOperation = {
  requestId: string
  key: string
  digest: string
  /** The response to a request for a stream while the operation runs. */
  meanwhile: CapabilityAnswer
  answer: Promise<CapabilityAnswer>
  emit(text: string): void
  /** Stops the operation. */
  cancel(): void
  /**
   * Sends the kept lines after a line's number, then every later line until the response. `missed`
   * is the number of lines that were dropped before.
   */
  listen(afterId: number, listener: Listener): { missed: number; stop(): void }
}

/** `finish` gives the response to all callers and listeners. */
export type RunningOperation = DeviceOperation & { finish(answer: CapabilityAnswer): void }

export function operation(
  about: Pick<DeviceOperation, 'requestId' | 'key' | 'digest' | 'meanwhile' | 'cancel'>,
): RunningOperation {
  const lines: OutputLine[] = []
  const listeners = new Set<Listener>()
  const { promise, resolve } = Promise.withResolvers<CapabilityAnswer>()
  let bytes = 0
  let lastId = 0
  return {
    ...about,
    answer: promise,
    emit(text) {
      lastId += 1
      const line = { id: lastId, text }
      lines.push(line)
      bytes += text.length
      while (lines.length > maxLines || bytes > maxBytes) bytes -= lines.shift()?.text.length ?? 0
      for (const listener of listeners) listener.onLine(line)
    },
    listen(afterId, listener) {
      const oldest = lines[0]?.id ?? lastId + 1
      for (const line of lines) if (line.id > afterId) listener.onLine(line)
      listeners.add(listener)
      return { missed: Math.max(0, oldest - 1 - afterId), stop: () => listeners.delete(listener) }
    },
    finish(answer) {
      resolve(answer)
      for (const listener of listeners) listener.onAnswer(answer)
      listeners.clear()
    },
  }
}
