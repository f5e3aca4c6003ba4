import { setPriority } from 'node:os'
import { settle } from './program.ts'

/** A report that somebody started on a node and that never ends: it uses all the CPU it gets, at the lowest priority there is. */
settle()
setPriority(19)
process.title = 'report-export'
process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)

function work(): void {
  const until = performance.now() + 50
  for (let sum = 0; performance.now() < until; ) sum += Math.sqrt(sum + 1)
  // Back to the loop, which sees when the controller is gone.
  setImmediate(work)
}
work()
