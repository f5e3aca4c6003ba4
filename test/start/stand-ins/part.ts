import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

// Plays any part of Nightshift: says it is ready, shows its environment, and has a child of its
// own.
const { LAB_PORT, RUNBOOK_PORT, WORKER_PORT, PORT, LAST_WORDS, TAKEN_ONCE, SOON_GONE, STUBBORN } = process.env
if (LAST_WORDS) {
  process.stderr.write(`${LAST_WORDS}\n`)
  process.exit(3)
}
// Somebody takes the worker's port just before the worker does, and says that it is ready.
if (TAKEN_ONCE && WORKER_PORT && !existsSync(TAKEN_ONCE)) {
  const stranger = `require('node:http').createServer((q, a) => a.end('ok')).listen(${WORKER_PORT}, '127.0.0.1')`
  const { pid } = spawn(process.execPath, ['-e', stranger], { stdio: 'ignore', detached: true })
  writeFileSync(TAKEN_ONCE, `${pid} ${WORKER_PORT}`)
  while (!(await fetch(`http://127.0.0.1:${WORKER_PORT}/readyz`).catch(() => null))) await sleep(10)
  await sleep(200)
}
if (SOON_GONE && WORKER_PORT) setTimeout(() => process.exit(7), Number(SOON_GONE))
// Never becomes ready and does not go when asked to.
if (STUBBORN) process.on('SIGTERM', () => {})
const said = { 'x-nightshift-start': process.env.NIGHTSHIFT_START_NONCE ?? '' }
const grandchild = spawn('sleep', ['600'], { stdio: 'ignore' })
createServer((request, response) => {
  if (request.url === '/env') response.end(JSON.stringify({ ...process.env, grandchild: grandchild.pid }))
  else if (STUBBORN) response.writeHead(503).end('{"database":"down"}')
  else response.writeHead(request.url === '/readyz' ? 200 : 404, said).end()
}).listen(Number(LAB_PORT ?? RUNBOOK_PORT ?? WORKER_PORT ?? PORT), '127.0.0.1')
