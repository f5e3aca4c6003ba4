import { spawn } from 'node:child_process'
import { createServer } from 'node:http'

// Plays any part of Nightshift: says it is ready, shows its environment, and has a child of its own.
const { LAB_PORT, RUNBOOK_PORT, WORKER_PORT, PORT, LAST_WORDS } = process.env
if (LAST_WORDS) {
  process.stderr.write(`${LAST_WORDS}\n`)
  process.exit(3)
}
const grandchild = spawn('sleep', ['600'], { stdio: 'ignore' })
createServer((request, response) => {
  if (request.url === '/env') response.end(JSON.stringify({ ...process.env, grandchild: grandchild.pid }))
  else response.writeHead(request.url === '/readyz' ? 200 : 404).end()
}).listen(Number(LAB_PORT ?? RUNBOOK_PORT ?? WORKER_PORT ?? PORT), '127.0.0.1')
