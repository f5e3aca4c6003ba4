import { X509Certificate } from 'node:crypto'
import { appendFileSync, closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { announce, certificateFile, clockFile, lockFile, readSpecAndSettle, searchLog } from './program.ts'

/**
 * Serves a web node's metrics in Prometheus' text format: requests, durations, memory, clock, and
 * the end of its certificate. A metric that common exporters have gets the name that they use.
 */
const registry = new Registry()
collectDefaultMetrics({ register: registry })

const registers = [registry]
const requests = new Counter({
  name: 'http_requests_total',
  help: 'Requests by tenant, path and status code.',
  labelNames: ['tenant', 'path', 'code'],
  registers,
})
const durations = new Histogram({
  name: 'http_request_duration_seconds',
  help: 'Time until the answer was complete.',
  labelNames: ['path'],
  buckets: [0.005, 0.02, 0.1, 0.5, 2],
  registers,
})

/** Counts one request. Labels for paths are fixed, so that requests cannot create series. */
function countRequest(tenant: string, url: string, code: number, seconds: number): void {
  const path = url.startsWith('/search') ? '/search' : '/'
  requests.inc({ tenant, path, code: String(code) })
  durations.observe({ path }, seconds)
}

/**
 * Adds a gauge whose value is read at each scrape. The series is absent if the value cannot be
 * read.
 */
function gauge(name: string, help: string, read: () => number | null): void {
  new Gauge({
    name,
    help,
    registers,
    collect() {
      const value = read()
      if (value === null) this.remove()
      else this.set(value)
    },
  })
}

/**
 * Returns the error of the node's clock in seconds. All nodes share the kernel's clock, so this
 * program adds the error to the times that it writes.
 */
function clockOffsetSeconds(): number {
  try {
    return Number((JSON.parse(readFileSync(clockFile, 'utf8')) as { offsetSeconds: number }).offsetSeconds)
  } catch {
    return 0
  }
}

function certificateEndSeconds(): number | null {
  try {
    return Date.parse(new X509Certificate(readFileSync(certificateFile)).validTo) / 1_000
  } catch {
    return null
  }
}

gauge('node_timex_offset_seconds', 'Offset of the clock.', clockOffsetSeconds)
gauge(
  'web_certificate_not_after_seconds',
  'Expiry of the certificate of the site (seconds since 1970).',
  certificateEndSeconds,
)

/** Orders of the controller, which make the node behave badly. */
type Orders = { leakBytesPerSecond?: number; reportShare?: number; isMute?: boolean }

const orders: Orders = {}
const leaked: Buffer[] = []

gauge('report_jobs_running', 'Reports that are being generated now.', () => (orders.reportShare ? 1 : 0))

/** Milliseconds of CPU time that the report still needs. */
let wantedMs = 0
const pieceMs = 5

/**
 * Uses CPU time for a report, the same amount on every machine. Handles requests between pieces of
 * the work, so that the node does not look dead.
 */
function makeReport(): void {
  const begun = process.cpuUsage()
  let used = 0
  while (used < Math.min(pieceMs, wantedMs)) {
    // Reads the used time only once per many iterations, because reading it allocates memory.
    for (let turn = 0; turn < 100_000; turn += 1) Math.sqrt(turn)
    const { user, system } = process.cpuUsage(begun)
    used = (user + system) / 1_000
  }
  wantedMs -= used
  if (wantedMs > 0) setImmediate(makeReport)
}

setInterval(() => {
  const { leakBytesPerSecond = 0, reportShare = 0 } = orders
  // Fills the buffer, so that its memory is really used.
  if (leakBytesPerSecond > 0) leaked.push(Buffer.alloc(Math.round(leakBytesPerSecond / 10), 1))
  const isIdle = wantedMs <= 0
  wantedMs = 100 * reportShare
  if (isIdle && wantedMs > 0) makeReport()
}, 100)

/**
 * Runs a web node. The node serves `/` for each tenant of its shard, chosen by the Host header, and
 * writes an access log. `/healthz` reports whether the node has the package that its release needs.
 */
const spec = readSpecAndSettle<{ tenants: string[]; port: number }>((told) => void Object.assign(orders, told))

const accessLog = 'logs/access.log'
const appLog = 'logs/app.log'
const traceLog = 'log/trace.log'
const rotateBytes = 256 * 1024
const keptRotations = 3

mkdirSync('logs', { recursive: true })
mkdirSync('var', { recursive: true })
appendFileSync(searchLog, `${new Date().toISOString()} info search index opened\n`)

function rotate(): void {
  for (let n = keptRotations - 1; n >= 1; n--) {
    try {
      renameSync(`${accessLog}.${n}`, `${accessLog}.${n + 1}`)
    } catch {
      // Ignores the error, because the node may not have so many rotated files yet.
    }
  }
  renameSync(accessLog, `${accessLog}.1`)
}

/** Returns the present time by this node's clock. */
const now = () => new Date(Date.now() + clockOffsetSeconds() * 1_000)

function record(tenant: string, status: number, path: string): void {
  appendFileSync(accessLog, `${now().toISOString()} ${tenant} ${status} ${JSON.stringify(path.slice(0, 200))}\n`)
  if (statSync(accessLog).size > rotateBytes) rotate()
}

/** Logs each request while the trace log exists. Removing the log turns tracing off. */
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

/**
 * Returns the package that the release needs, if its file is unreadable. Null if nothing is
 * missing.
 */
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

/**
 * Throws if a reindex left its lock, or if the release turned on a search whose index is missing.
 * The node's log then names the cause.
 */
function search(): void {
  const lock = readLock()
  if (lock !== null) {
    const why = `the index is locked: ${lockFile} was left by ${lock}`
    complain(why)
    throw new Error('the index is not available')
  }
  let features: { searchV2?: boolean } = {}
  try {
    features = JSON.parse(readFileSync('site/features.json', 'utf8')) as typeof features
  } catch {
    // Ignores the error, because a checkout without the file has no features.
  }
  if (features.searchV2) {
    complain('the index of search v2 is not there')
    throw new Error('the index of search v2 is not there')
  }
}

/** Reads the owner of the search lock. Null if there is no lock. */
function readLock(): string | null {
  try {
    const { by, pid, signal } = JSON.parse(readFileSync(lockFile, 'utf8')) as {
      by: string
      pid: number
      signal: number
    }
    return `${by} ${pid}, which ended by signal ${signal}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : 'something that cannot be read'
  }
}

let complainedAtMs = 0

/** Logs an error at most once per second, because more repetitions tell nothing new. */
function complain(why: string): void {
  if (Date.now() - complainedAtMs < 1_000) return
  complainedAtMs = Date.now()
  appendFileSync(searchLog, `${now().toISOString()} error search failed: ${why}\n`)
}

function serveHealth(response: ServerResponse): void {
  const missing = missingPackage()
  response.writeHead(missing === null ? 200 : 503, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify({ missingPackage: missing })}\n`)
}

async function serveMetrics(response: ServerResponse): Promise<void> {
  if (orders.isMute) return void response.writeHead(503).end('no metrics\n')
  response.writeHead(200, { 'content-type': registry.contentType })
  response.end(await registry.metrics())
}

const server = createServer((request, response) => {
  const startedAt = performance.now()
  const url = request.url as string
  trace(`${new Date().toISOString()} trace ${JSON.stringify(request.headers)}\n`)
  if (url === '/healthz') return serveHealth(response)
  if (url === '/metrics') return void serveMetrics(response)
  const tenant = (request.headers.host ?? '').replace(/:\d+$/, '')
  const end = (code: number, text: string) => {
    record(spec.tenants.includes(tenant) ? tenant : '-', code, text)
    countRequest(spec.tenants.includes(tenant) ? tenant : '-', url, code, (performance.now() - startedAt) / 1_000)
  }
  if (!spec.tenants.includes(tenant)) {
    end(404, url)
    response.writeHead(404).end('no such tenant\n')
    return
  }
  try {
    if (url.startsWith('/search')) search()
    // Reads the configuration at each request, so that a drifted file changes the responses.
    const config = JSON.parse(readFileSync('etc/config.json', 'utf8')) as Record<string, unknown>
    const page = readFileSync(`tenants/${tenant}/index.html`)
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': `max-age=${Number(config.maxAgeSeconds)}`,
      'x-node': spec.id,
      date: now().toUTCString(),
    })
    response.end(page)
    end(200, url)
  } catch (error) {
    response.writeHead(500).end()
    end(500, `${url} ${(error as Error).message}`)
  }
})
server.on('error', (error) => {
  appendFileSync(appLog, `${new Date().toISOString()} error ${error.message}\n`)
  process.exit(1)
})
limitLifetime()
announce(server, spec.port)

/**
 * Ends the service some time after its start, if the lifetime file exists. The service's log shows
 * start and end.
 */
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
