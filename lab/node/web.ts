import { appendFileSync, closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { announce, settle } from './program.ts'

/**
 * A web node: serves `/` for each tenant of its shard, chosen by the Host header, and writes an access log. `/healthz` tells whether
 * it has what its release needs.
 */
const spec = settle<{ tenants: string[]; port: number }>()

const accessLog = 'logs/access.log'
const appLog = 'logs/app.log'
const traceLog = 'log/trace.log'
const rotateBytes = 256 * 1024
const keptRotations = 3

mkdirSync('logs', { recursive: true })

function rotate(): void {
  for (let n = keptRotations - 1; n >= 1; n--) {
    try {
      renameSync(`${accessLog}.${n}`, `${accessLog}.${n + 1}`)
    } catch {
      // There are not yet so many.
    }
  }
  renameSync(accessLog, `${accessLog}.1`)
}

function record(tenant: string, status: number, path: string): void {
  appendFileSync(accessLog, `${new Date().toISOString()} ${tenant} ${status} ${JSON.stringify(path.slice(0, 200))}\n`)
  if (statSync(accessLog).size > rotateBytes) rotate()
}

/** Where somebody turned tracing on, each request is logged there; it ends when the log is taken away. */
function trace(text: string): void {
  let fd: number
  try {
    fd = openSync(traceLog, constants.O_WRONLY | constants.O_APPEND)
  } catch {
    return
  }
  appendFileSync(fd, text)
  closeSync(fd)
}

/** The package that the release needs and whose file cannot be read; null where nothing is missing. */
function missingPackage(): string | null {
  let needs: { package: string; file: string }
  try {
    needs = JSON.parse(readFileSync('etc/needs.json', 'utf8')) as typeof needs
  } catch {
    return null
  }
  try {
    JSON.parse(readFileSync(needs.file, 'utf8'))
    return null
  } catch {
    return needs.package
  }
}

const server = createServer((request, response) => {
  trace(`${new Date().toISOString()} trace ${JSON.stringify(request.headers)}\n`)
  if (request.url === '/healthz') {
    const missing = missingPackage()
    response.writeHead(missing === null ? 200 : 503, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify({ missingPackage: missing })}\n`)
    return
  }
  const tenant = (request.headers.host ?? '').replace(/:\d+$/, '')
  if (!spec.tenants.includes(tenant)) {
    record('-', 404, request.url!)
    response.writeHead(404).end('no such tenant\n')
    return
  }
  try {
    // Read at each request, so that a drifted file shows in what is served.
    const config = JSON.parse(readFileSync('etc/config.json', 'utf8')) as Record<string, unknown>
    const page = readFileSync(`tenants/${tenant}/index.html`)
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': `max-age=${Number(config.maxAgeSeconds)}`,
      'x-node': spec.id,
    })
    response.end(page)
    record(tenant, 200, request.url!)
  } catch (error) {
    response.writeHead(500).end()
    record(tenant, 500, `${request.url} ${(error as Error).message}`)
  }
})
server.on('error', (error) => {
  appendFileSync(appLog, `${new Date().toISOString()} error ${error.message}\n`)
  process.exit(1)
})
limitLifetime()
announce(server, spec.port)

/** Something in the service ends it some time after its start, for as long as the file says so. Its log tells. */
function limitLifetime(): void {
  const seconds = lifetimeSeconds()
  if (seconds === null) return
  appendFileSync(appLog, `${new Date().toISOString()} started the session table is empty\n`)
  setTimeout(() => {
    if (lifetimeSeconds() === null) return
    appendFileSync(appLog, `${new Date().toISOString()} fatal the session table is full\n`)
    process.exit(70)
  }, seconds * 1_000)
}

function lifetimeSeconds(): number | null {
  try {
    return (JSON.parse(readFileSync('etc/lifetime.json', 'utf8')) as { seconds: number }).seconds
  } catch {
    return null
  }
}
