import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CapabilityAnswer } from '../../domain/mesh.ts'
import type { Reply } from './agent.ts'
import type { Operation } from './operation.ts'

/** Somebody who reads slower than a program writes is not waited for: what waits for them is dropped from here on. */
const mostBuffered = 4_000_000
const heartbeatMs = 15_000

/**
 * Lines as they come (`event: line`, a JSON string each, numbered), then `event: answer` and the end. `Last-Event-ID` goes on behind
 * that line; `event: missed` says how many are gone meanwhile.
 */
export function streamOperation(
  found: { running: Operation } | Reply,
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
      if (response.writableLength > mostBuffered) dropped += 1
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
