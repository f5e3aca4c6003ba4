import { createServer } from 'node:http'
import { setPriority } from 'node:os'
import { announce, readSpecAndSettle } from './program.ts'

/**
 * Runs a process that somebody started by hand and forgot. With a port it is a debug server that
 * occupies the port; without a port it is an endless report.
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

/** Uses all free CPU time, at the lowest priority. */
function exportReport(): void {
  setPriority(19)
  process.title = 'report-export'
  process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)
  work()
}

function work(): void {
  const until = performance.now() + 50
  for (let sum = 0; performance.now() < until; ) sum += Math.sqrt(sum + 1)
  // Returns to the event loop, so that the process notices the controller's end.
  setImmediate(work)
}
