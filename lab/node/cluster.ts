import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { announce, readSpecAndSettle } from './program.ts'

/**
 * Runs a cluster in separate mount, network and process namespaces, and relays loopback connections
 * to its API server. The cluster ends with this process, however this process ends.
 */
const { unshare } = readSpecAndSettle<{ unshare: string; order: object }>(({ order }) => {
  if (order) inside.stdin.write(`${JSON.stringify(order)}\n`)
})

const socket = 'api.sock'
rmSync(socket, { force: true })

// Makes the first process inside a shell, because a shell reaps orphans and Node does not.
const first = 'exec 3<&0; "$@" <&3 & wait $!'
const inside = spawn(
  unshare,
  [
    ...['--mount', '--net', '--pid', '--ipc', '--propagation', 'private', '--fork', '--kill-child', '--mount-proc'],
    ...['sh', '-c', first, 'sh', process.execPath, join(import.meta.dirname, 'cluster-inside.ts')],
  ],
  { stdio: ['pipe', 'inherit', 'inherit'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
)
process.on('exit', () => inside.kill('SIGKILL'))
inside.stdin.on('error', () => {})
inside.on('error', (error) => {
  process.stderr.write(`Error: ${error.message}\n`)
  process.exit(1)
})
inside.on('exit', (code) => process.exit(code ?? 1))

const relay = createServer({ allowHalfOpen: true }, (from) => {
  const to = connect({ path: socket, allowHalfOpen: true })
  from.pipe(to).pipe(from)
  from.on('error', () => to.destroy())
  to.on('error', () => from.destroy())
})
announce(relay)
