import { X509Certificate } from 'node:crypto'
import { appendFileSync, closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { announce, certificateFile, clockFile, lockFile, readSpecAndSettle, searchLog } from './program.ts'

/**
 * A web node's metrics in Prometheus' text format: requests, times, memory, clock, its
 * certificate's end. Names are the common exporters' where they have the same.
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
  help: 'Time to the end of the answer.',
  labelNames: ['path'],
  buckets: [0.005, 0.02, 0.1, 0.5, 2],
  registers,
})

/** Counts one answered request. Paths are a closed list, so that nobody makes series by asking. */
function countRequest(tenant: string, url: string, code: number, seconds: number): void {
  const path = url.startsWith('/search') ? '/search' : '/'
  requests.inc({ tenant, path, code: String(code) })
  durations.observe({ path }, seconds)
}

/** A gauge whose value is looked up at each scrape; none where it cannot be read. */
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

/** The node's clock error in seconds: no process has a kernel clock to itself, so it is added. */
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

gauge('node_timex_offset_seconds', 'How far the clock is off.', clockOffsetSeconds)
gauge(
  'web_certificate_not_after_seconds',
  'When the certificate of the site ends (seconds since 1970).',
  certificateEndSeconds,
)

/** What the controller tells the process to do badly. */
type Orders = { leakBytesPerSecond?: number; reportShare?: number; isMute?: boolean }

const orders: Orders = {}
const leaked: Buffer[] = []

gauge('report_jobs_running', 'Reports that are being made now.', () => (orders.reportShare ? 1 : 0))

/** What the report wants of a core, in milliseconds of its time. */
let wantedMs = 0
const pieceMs = 5

/**
 * Uses time on a core, not on the clock: a busy machine gives it late, and the process is as loud.
 * Answers requests between pieces, so that a loud one is not taken for dead.
 */
function makeReport(): void {
  const begun = process.cpuUsage()
  let used = 0
  while (used < Math.min(pieceMs, wantedMs)) {
    // One look at what it used takes memory, so there is one in many turns.
    for (let turn = 0; turn < 100_000; turn += 1) Math.sqrt(turn)
    const { user, system } = process.cpuUsage(begun)
    used = (user + system) / 1_000
  }
  wantedMs -= used
  if (wantedMs > 0) setImmediate(makeReport)
}

setInterval(() => {
  const { leakBytesPerSecond = 0, reportShare = 0 } = orders
  // Filled, so that the memory is truly taken.
  if (leakBytesPerSecond > 0) leaked.push(Buffer.alloc(Math.round(leakBytesPerSecond / 10), 1))
  const isIdle = wantedMs <= 0
  wantedMs = 100 * reportShare
  if (isIdle && wantedMs > 0) makeReport()
}, 100)

/**
 * A web node: serves `/` for each tenant of its shard, chosen by the Host header, and writes an
 * access log. `/healthz` tells whether it has what its release needs.
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
      // There are not yet so many.
    }
  }
  renameSync(accessLog, `${accessLog}.1`)
}

/** The time by the clock of this node. */
const now = () => new Date(Date.now() + clockOffsetSeconds() * 1_000)

function record(tenant: string, status: number, path: string): void {
  appendFileSync(accessLog, `${now().toISOString()} ${tenant} ${status} ${JSON.stringify(path.slice(0, 200))}\n`)
  if (statSync(accessLog).size > rotateBytes) rotate()
}

/** With tracing on, each request is logged there; it ends when the log is taken away. */
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

/** The package that the release needs and whose file is unreadable; null: nothing missing. */
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
 * Throws where a reindex left its lock, and where the release turned on a broken search. Its log
 * says which.
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
    // A checkout without it has none of them.
  }
  if (features.searchV2) {
    complain('the index of search v2 is not there')
    throw new Error('the index of search v2 is not there')
  }
}

/** The lock's owner, by the lock; null without one. */
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

/** Once a second: a log that repeats itself tells no more. */
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
    // Read at each request, so that a drifted file shows in what is served.
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
 * Something in the service ends it some time after its start, if the file says so; its log tells.
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
