import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readSpecAndSettle } from './program.ts'

/**
 * Runs a database server, and reports when its port is open. If the server or this process ends,
 * both end.
 */
const { program, args, port, signal } = readSpecAndSettle<{
  program: string
  args: string[]
  port: number
  /** The signal that ends the server at once but lets it remove its shared memory. */
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

/**
 * Ends the server and waits at most 0.4 s, because the controller kills the whole group after 0.5
 * s.
 */
function end(): void {
  child.kill(signal)
  const until = Date.now() + 400
  const pause = new Int32Array(new SharedArrayBuffer(4))
  while (Date.now() < until && isAlive()) Atomics.wait(pause, 0, 0, 10)
  child.kill('SIGKILL')
}

/**
 * Returns whether the server runs. Treats a zombie as ended, because this process is busy now and
 * cannot reap it.
 */
function isAlive(): boolean {
  try {
    const text = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    return !text.slice(text.lastIndexOf(')') + 2).startsWith('Z')
  } catch {
    return false
  }
}
