import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { certificateFile, clockFile } from './program.ts'

/**
 * What a web node says of itself in Prometheus' text format: requests, times, memory, its clock, and when its certificate ends. Names are
 * those of the common exporters where one has the same thing.
 */
export const registry = new Registry()
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
export function countRequest(tenant: string, url: string, code: number, seconds: number): void {
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

/** How far the clock of the node is off, in seconds: no process can have a clock of the kernel to itself, so it is added to it. */
export function clockOffsetSeconds(): number {
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
export type Orders = { leakBytesPerSecond?: number; reportShare?: number; isMute?: boolean }

export const orders: Orders = {}
const leaked: Buffer[] = []

gauge('report_jobs_running', 'Reports that are being made now.', () => (orders.reportShare ? 1 : 0))

/** What the report wants of a core, in milliseconds of its time. */
let wantedMs = 0
const pieceMs = 5

/**
 * Uses time on a core, not on the clock: a busy machine gives it late, and the process is as loud. Requests are answered between two pieces, so that
 * who is loud is not taken for dead.
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
