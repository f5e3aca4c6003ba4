import { spawn } from 'node:child_process'
import { readSpecAndSettle } from './program.ts'

/**
 * Runs a program of the shop. The program writes to a MariaDB with the command line client, one
 * statement after another.
 */
const { program, args, statements, everyMs } = readSpecAndSettle<{
  program: string
  args: string[]
  statements: string[]
  everyMs: number
}>()

begin()
process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)

/** Opens a session. Opens the next one after a session was ended. */
function begin(): void {
  const client = spawn(program, args, { stdio: ['pipe', 'ignore', 'inherit'] })
  let n = 0
  const timer = setInterval(() => client.stdin.write(`${statements[n++ % statements.length]};\n`), everyMs)
  client.stdin.on('error', () => undefined)
  client.on('error', () => clearInterval(timer))
  client.on('exit', () => {
    clearInterval(timer)
    setTimeout(begin, 1_000)
  })
}
