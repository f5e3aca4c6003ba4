import { spawn } from 'node:child_process'
import { readSpecAndSettle } from './program.ts'

/**
 * Runs a program of the shop that writes to a MariaDB with the command line client, one statement
 * after another.
 */
const { program, args, statements, everyMs } = readSpecAndSettle<{
  program: string
  args: string[]
  statements: string[]
  everyMs: number
}>()

begin()
process.stdout.write(`${JSON.stringify({ listening: 0 })}\n`)

/** Opens a session, and another session whenever somebody ended the last one. */
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
