import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readSpecAndSettle } from './program.ts'

/** Runs a database server and says when its port is open; both end together. */
const { program, args, port, signal } = readSpecAndSettle<{
  program: string
  args: string[]
  port: number
  /** Ends the server at once, yet so that it removes its shared memory. */
  signal: NodeJS.Signals
}>()

const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
process.on('exit', end)
child.on('error', (error) => {
  process.stderr.write(`Error: ${error.message}\n`)
  process.exit(1)
})
child.on('exit', (code) => process.exit(code ?? 1))

while (!(await isOpen())) await sleep(50)
process.stdout.write(`${JSON.stringify({ listening: port })}\n`)

function isOpen(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('close', () => socket.destroy())
    socket.once('connect', () => socket.end())
  })
}

/** Waits 0.4 s at most: after half a second the controller kills the whole group. */
function end(): void {
  child.kill(signal)
  const until = Date.now() + 400
  const pause = new Int32Array(new SharedArrayBuffer(4))
  while (Date.now() < until && isAlive()) Atomics.wait(pause, 0, 0, 10)
  child.kill('SIGKILL')
}

/** A zombie has ended: this process is busy and cannot collect it. */
function isAlive(): boolean {
  try {
    const text = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    return !text.slice(text.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return false
  }
}
