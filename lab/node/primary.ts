import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { announce, logFile, newestRecordAt, readSpecAndSettle } from './program.ts'

/** Runs a database primary: appends records to its log, and serves the log by offset. */
readSpecAndSettle()

const chunkBytes = 1024 * 1024

mkdirSync('data', { recursive: true })
const { recordIntervalMs } = JSON.parse(readFileSync('etc/config.json', 'utf8')) as { recordIntervalMs: number }
const log = openSync(logFile, 'a+', 0o644)
let newestAt = newestRecordAt(logFile)
let n = 0

function append(): void {
  newestAt = Date.now()
  writeSync(log, `{"at":${newestAt},"n":${n++}}\n`)
}
append()
setInterval(append, recordIntervalMs)

const server = createServer((request, response) => {
  const url = new URL(request.url!, 'http://node')
  const { size } = fstatSync(log)
  if (url.pathname === '/status') {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ role: 'primary', bytes: size, newestAt, lagSeconds: 0 }))
    return
  }
  const from = Number(url.searchParams.get('from') ?? 0)
  if (url.pathname !== '/log' || !Number.isSafeInteger(from) || from < 0) {
    response.writeHead(404).end()
    return
  }
  // Stops a replica whose file is longer than the log, because the file is not a copy of the log.
  if (from > size) {
    response.writeHead(416).end()
    return
  }
  const chunk = Buffer.alloc(Math.min(chunkBytes, size - from))
  readSync(log, chunk, 0, chunk.length, from)
  response.writeHead(200, { 'newest-at': String(newestAt) })
  response.end(chunk)
})
process.on('exit', () => closeSync(log))
announce(server)
