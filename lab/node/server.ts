import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { readSpecAndSettle } from './program.ts'

/**
 * Runs a server such as Prometheus, and reports when the server responds. If the server or this
 * process ends, both end.
 */
const { program, args, port, ready, env } = readSpecAndSettle<{
  program: string
  args: string[]
  port: number
  ready: string
  /**
   * Environment variables besides the PATH. They must not contain a secret, because every user of
   * the machine can read them.
   */
  env?: Record<string, string>
}>()

const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'], env: { PATH: '/usr/bin:/bin', ...env } })
process.on('exit', () => child.kill('SIGKILL'))
child.on('error', (error) => {
  process.stderr.write(`Error: ${error.message}\n`)
  process.exit(1)
})
child.on('exit', (code) => process.exit(code ?? 1))

for (;;) {
  const answer = await fetch(`http://127.0.0.1:${port}${ready}`).catch(() => null)
  if (answer?.ok) break
  await sleep(50)
}
process.stdout.write(`${JSON.stringify({ listening: port })}\n`)
