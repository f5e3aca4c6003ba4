import { createServer } from 'node:http'
import { setPriority } from 'node:os'
import { announce, readSpecAndSettle } from './program.ts'

/**
 * A forgotten start by hand on a node: with a port a debug server that holds it, without one an
 * endless report.
 */
const { port } = readSpecAndSettle<{ port?: number }>()
if (port === undefined) exportReport()
else holdPort(port)

function holdPort(held: number): void {
  process.title = `debug-server 127.0.0.1:${held}`
  announce(
    createServer((_, response) => response.end('debugging\n')),
    held,
  )
}

/** It uses all the CPU it gets, at the lowest priority there is. */
function exportReport(): void {
  setPriority(19)
  process.title = 'report-export'
  process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)
  work()
}

function work(): void {
  const until = performance.now() + 50
  for (let sum = 0; performance.now() < until; ) sum += Math.sqrt(sum + 1)
  // Back to the loop, which sees when the controller is gone.
  setImmediate(work)
}
